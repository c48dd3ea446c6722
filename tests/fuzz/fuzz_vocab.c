/* Any file as a vocabulary: opened and used, or refused with a sentence. */
#include "src/token/vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const qn_vocab *v)
{
    static const char text[] = "the mill<s> 12 \xc3\xa9\xcc\x81 \xff<|im_end|>\n\n  aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa \xef\xac\x81";
    int32_t ids[512];
    char out[8192];
    size_t n, n_out;
    qn_err err;
    for (int flags = 0; flags < 4; flags++)
        if (qn_vocab_tokenize(v, (qn_str){ text, sizeof text - 1 }, flags, NULL, 0, ids, 512, &n, &err) == QN_OK)
            qn_vocab_detokenize(v, ids, n, flags & 1, out, sizeof out, &n_out, &err);
    for (int32_t id = 0; id < qn_vocab_size(v) && id < 1000; id++) {
        qn_str s;
        if (qn_vocab_token_text(v, id, true, &s) != QN_OK || (s.len && (s.ptr[0] + s.ptr[s.len - 1]) > 1000)) abort(); /* reads its ends */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    qn_file *f;
    qn_vocab *v;
    qn_err err;
    const int fd = memfd_create("vocab", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (qn_file_open(&f, path, &err) == QN_OK) {
        if (qn_vocab_open(&v, f, &err) == QN_OK) use(v);
        else if (!err.text[0]) abort();
        qn_vocab_close(&v);
        qn_file_close(&f);
    }
    close(fd);
    return 0;
}

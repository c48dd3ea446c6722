/* Any bytes as a saved session: refused, or a timeline of tokens that the model has, whose blocks come back when it is closed. */
#include "src/format/gguf.h"
#include "src/run/session_file.h"
#include "tests/common/tiny_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One small model for all inputs; its seed is that of the corpus. */
static qn_engine *engine(void)
{
    static qn_engine *e;
    static qn_model *m;
    char path[64];
    const qn_engine_opts o = { .size = sizeof o, .n_ctx = 64, .n_threads = 1 };
    if (e) return e;
    snprintf(path, sizeof path, "/tmp/quern-fuzz-%ld.gguf", (long)getpid());
    if (!tiny_model_write(path, "gemma3", 8, 5) || qn_model_open(&m, path, NULL, NULL) != QN_OK || qn_engine_open(&e, m, &o, NULL) != QN_OK) abort();
    unlink(path);
    return e;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    qn_file *f = NULL;
    qn_session *s = NULL;
    qn_str note;
    qn_err err = { 0 };
    qn_engine_stats st;
    if (qn_session_open(&s, engine(), &err) != QN_OK) abort();
    qn_status got = qn_file_open_memory(&f, data, size, &err);
    if (got == QN_OK) got = qn_session_load_file(s, f, &note, &err);
    if (got != QN_OK && (!err.text[0] || qn_session_position(s) != 0)) abort();
    qn_file_close(&f);
    qn_session_close(&s);
    qn_engine_get_stats(engine(), &st);
    if (st.n_blocks_free + st.n_blocks_idle != st.n_blocks) abort();
    return 0;
}

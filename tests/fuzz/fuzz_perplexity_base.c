/* Any bytes as a file of a base model's probabilities: refused with one sentence, or rows that a model can be compared with, every figure a number. */
#include "tools/cli_tokens.c"
#include "tools/perplexity_base.c"
#include "tools/perplexity_row.c"

#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

enum { V_MAX = 64, GROUP = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int n_said;

int cli_fault(const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    n_said += vsnprintf(text, sizeof text, fmt, ap) > 0;
    va_end(ap);
    return CLI_FAULT;
}

/* All rows, in groups, against a model of that vocabulary. */
static bool compare(ppl_base *b)
{
    const int32_t v = b->head.n_vocab, n_rows = ppl_n_rows(b->head.n_ctx);
    uint16_t rows[GROUP * (V_MAX + 1 + PPL_ROW_HEAD)];
    float logits[V_MAX];
    for (int32_t i = 0; i < v; i++) logits[i] = (float)(i * i % 11);
    for (int32_t c = 0; c < b->head.n_chunks; c++) {
        for (int32_t at = 0, n; at < n_rows; at += n) {
            n = n_rows - at < GROUP ? n_rows - at : GROUP;
            if (!ppl_base_rows(b, n, rows)) return false;
            for (int32_t i = 0; i < n; i++) {
                const ppl_point p = ppl_row_compare(rows + (size_t)i * ppl_row_words(v), logits, v, b->ids.id[i] % v);
                if (!isfinite(p.nll) || !isfinite(p.nll_base) || !isfinite(p.kl) || !isfinite(p.dp)) abort();
            }
        }
    }
    if (ppl_base_rows(b, 1, rows)) abort();
    n_said = 0;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    int32_t v = 0;
    if (size >= 16) memcpy(&v, data + 12, sizeof v);
    if (v < 1 || v > V_MAX) v = 5;
    const int fd = memfd_create("perplexity_base", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    ppl_base b;
    n_said = 0;
    const bool good = ppl_base_open(&b, path, v) && compare(&b);
    if (n_said != !good) abort();
    ppl_base_close(&b);
    close(fd);
    return 0;
}

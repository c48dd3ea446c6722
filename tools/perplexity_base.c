#include "perplexity_base.h"

#include "perplexity_row.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char magic[8] = { '_', 'l', 'o', 'g', 'i', 't', 's', '_' };
enum { HEAD_BYTES = 20, CTX_MAX = 1 << 24 };

/* With n_ctx below 2^24 and the others below 2^31 the tokens are fewer than 2^55; the rows' product is checked. */
static bool file_bytes(const ppl_head *h, uint64_t *out)
{
    const uint64_t n_tokens = (uint64_t)h->n_ctx * (uint64_t)h->n_chunks, n_rows = (uint64_t)ppl_n_rows(h->n_ctx) * (uint64_t)h->n_chunks;
    const uint64_t row_bytes = 2 * (uint64_t)ppl_row_words(h->n_vocab);
    if (n_rows > UINT64_MAX / 4 / row_bytes) return false;
    *out = HEAD_BYTES + 4 * n_tokens + n_rows * row_bytes;
    return true;
}

static bool read_head(ppl_base *b, int32_t n_vocab)
{
    char head[HEAD_BYTES];
    if (fread(head, 1, sizeof head, b->f) != sizeof head || memcmp(head, magic, sizeof magic) != 0) {
        cli_fault("%s is no file of probabilities: 'quern perplexity --kl-base' writes them, and llama-perplexity", b->path);
        return false;
    }
    memcpy(&b->head, head + sizeof magic, sizeof b->head);
    const ppl_head *h = &b->head;
    if (h->n_vocab != n_vocab) {
        cli_fault("%s has a vocabulary of %d tokens, the model one of %d", b->path, h->n_vocab, n_vocab);
        return false;
    }
    if (h->n_ctx < 3 || h->n_ctx > CTX_MAX || h->n_chunks < 1) {
        cli_fault("%s tells of %d chunks of %u tokens", b->path, h->n_chunks, h->n_ctx);
        return false;
    }
    return true;
}

/* Bytes that are there bound all that is allocated. */
static bool check_size(const ppl_base *b)
{
    struct stat st;
    uint64_t want;
    if (fstat(fileno(b->f), &st) != 0 || !S_ISREG(st.st_mode)) {
        cli_fault("%s is no plain file", b->path);
        return false;
    }
    const ppl_head *h = &b->head;
    if (file_bytes(h, &want) && want == (uint64_t)st.st_size) return true;
    cli_fault("%s has %lld bytes, which is not the size of %d chunks of %u tokens: it is cut off or damaged", b->path, (long long)st.st_size,
              h->n_chunks, h->n_ctx);
    return false;
}

static bool read_tokens(ppl_base *b)
{
    const size_t n = (size_t)b->head.n_ctx * (size_t)b->head.n_chunks;
    if (!cli_ids_reserve(&b->ids, n)) {
        cli_fault("no memory for %zu tokens", n);
        return false;
    }
    b->ids.n = n;
    if (fread(b->ids.id, sizeof *b->ids.id, n, b->f) != n) {
        cli_fault("cannot read %s: %s", b->path, ferror(b->f) ? strerror(errno) : "it ends early");
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (b->ids.id[i] >= 0 && b->ids.id[i] < b->head.n_vocab) continue;
        cli_fault("%s is damaged: token %zu is %d, of a vocabulary of %d", b->path, i, b->ids.id[i], b->head.n_vocab);
        return false;
    }
    return true;
}

bool ppl_base_open(ppl_base *b, const char *path, int32_t n_vocab)
{
    *b = (ppl_base){ .path = path, .f = fopen(path, "rb") };
    if (!b->f) {
        cli_fault("cannot read %s: %s", path, strerror(errno));
        return false;
    }
    return read_head(b, n_vocab) && check_size(b) && read_tokens(b);
}

bool ppl_base_rows(ppl_base *b, int32_t n, uint16_t *rows)
{
    const size_t words = ppl_row_words(b->head.n_vocab);
    if (fread(rows, words * sizeof *rows, (size_t)n, b->f) != (size_t)n) {
        cli_fault("cannot read %s: %s", b->path, ferror(b->f) ? strerror(errno) : "it ends early");
        return false;
    }
    for (int32_t i = 0; i < n; i++) {
        if (ppl_row_is_good(rows + (size_t)i * words)) continue;
        cli_fault("%s is damaged: a row of it holds no probabilities", b->path);
        return false;
    }
    return true;
}

void ppl_base_close(ppl_base *b)
{
    if (b->f) fclose(b->f);
    cli_ids_free(&b->ids);
    *b = (ppl_base){ 0 };
}

bool ppl_base_begin(FILE *f, const ppl_head *head, const int32_t *tokens)
{
    const size_t n = (size_t)head->n_ctx * (size_t)head->n_chunks;
    return fwrite(magic, 1, sizeof magic, f) == sizeof magic && fwrite(head, sizeof *head, 1, f) == 1 && fwrite(tokens, sizeof *tokens, n, f) == n;
}

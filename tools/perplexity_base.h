/* Files of a base model's probabilities, in the format of llama.cpp's llama-perplexity: either program compares with the other's. */
#ifndef QUERN_PERPLEXITY_BASE_H
#define QUERN_PERPLEXITY_BASE_H

#include "cli_out.h"
#include "cli_tokens.h"

/* The file, numbers in the machine's order:
 *    0          8             12              16              20
 *    | _logits_ | n_ctx: u32  | n_vocab: i32  | n_chunks: i32 | tokens: i32 [n_chunks][n_ctx] | rows [n_chunks][n_ctx - 1 - n_ctx / 2]
 * Tokens are those of the text, before BOS takes the place of a chunk's first. Rows: perplexity_row.h. */
typedef struct ppl_head {
    uint32_t n_ctx;
    int32_t n_vocab, n_chunks;
} ppl_head;

/** Positions of a chunk that count: those of its second half that have a following token. */
static inline int32_t ppl_n_rows(uint32_t n_ctx)
{
    return (int32_t)(n_ctx - 1 - n_ctx / 2);
}

typedef struct ppl_base {
    FILE *f;
    const char *path;      /* borrowed                */
    ppl_head head;
    cli_ids ids;           /* n_chunks * n_ctx        */
} ppl_base;

/**
 * Open a file and read its tokens. All of it is checked but the rows, and that they are all there.
 * @param n_vocab  of the model that is compared
 * @return false after a message
 */
bool ppl_base_open(ppl_base *b, const char *path, int32_t n_vocab);
/** The next `n` rows into [n][ppl_row_words]. @return false after a message */
bool ppl_base_rows(ppl_base *b, int32_t n, uint16_t *rows);
void ppl_base_close(ppl_base *b);

/** Begin a file: head and tokens. Rows follow with fwrite. @return false when it could not be written */
bool ppl_base_begin(FILE *f, const ppl_head *head, const int32_t *tokens);

#endif

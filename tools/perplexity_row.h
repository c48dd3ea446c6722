/* One position: from logits to probabilities, and to the row of 16-bit log-probabilities that stands for them in a file. */
#ifndef QUERN_PERPLEXITY_ROW_H
#define QUERN_PERPLEXITY_ROW_H

#include "perplexity_stats.h"

#include <stdint.h>

/* A row, as llama.cpp's llama-perplexity keeps it:
 *    0          4          8              12 ...
 *    | step: f32 | low: f32 | code: u16 [n_vocab], and one more where n_vocab is odd |     ln p[i] = low + step * code[i]
 * The range ends 16 nats below the most likely token: what is less likely is stored as if it were there. */
enum { PPL_ROW_HEAD = 4 };  /* step and low, in 16-bit words */
/** 16-bit words of a row. */
static inline size_t ppl_row_words(int32_t n_vocab)
{
    return (size_t)n_vocab + ((size_t)n_vocab & 1) + PPL_ROW_HEAD;
}

/** Logits of one position and the token that follows. nll is not finite when the logits are not. @param logits [n_vocab] */
double ppl_row_nll(const float *logits, int32_t n_vocab, int32_t token);
/** Write a row. @return nll as above @param row [ppl_row_words(n_vocab)] */
double ppl_row_write(uint16_t *row, const float *logits, int32_t n_vocab, int32_t token);
/** Are step and low such as probabilities can have? */
bool ppl_row_is_good(const uint16_t *row);
/** Compare with a good row. Tokens whose base probability is below e^-16 add nothing to the divergence, as in llama.cpp. */
ppl_point ppl_row_compare(const uint16_t *row, const float *logits, int32_t n_vocab, int32_t token);

#endif

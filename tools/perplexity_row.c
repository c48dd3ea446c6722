#include "perplexity_row.h"

#include <math.h>
#include <string.h>

static const float RANGE = 16;   /* nats that a row spans      */
static const float CODES = 65535;

static int32_t argmax(const float *x, int32_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

/* ln sum exp(x), less the largest x. */
static double log_sum(const float *x, int32_t n, float max)
{
    double sum = 0;
    for (int32_t i = 0; i < n; i++) sum += (double)expf(x[i] - max);
    return log(sum);
}

/* In one order of operations, so that a figure is the same whatever else is made of a row. */
static double nll_of(const float *logits, float max, double log_all, int32_t token)
{
    return (double)max - (double)logits[token] + log_all;
}

double ppl_row_nll(const float *logits, int32_t n_vocab, int32_t token)
{
    const float max = logits[argmax(logits, n_vocab)];
    return nll_of(logits, max, log_sum(logits, n_vocab, max), token);
}

double ppl_row_write(uint16_t *row, const float *logits, int32_t n_vocab, int32_t token)
{
    const float max = logits[argmax(logits, n_vocab)];
    const double log_all = log_sum(logits, n_vocab, max);
    float min = max;
    for (int32_t i = 0; i < n_vocab; i++) min = logits[i] < min ? logits[i] : min;
    const float span = max - min < RANGE ? max - min : RANGE;
    const float head[2] = { span / CODES, (float)(-(double)span - log_all) };
    const float codes = head[0] > 0 ? 1 / head[0] : 0;
    memset(row, 0, ppl_row_words(n_vocab) * sizeof *row);
    memcpy(row, head, sizeof head);
    for (int32_t i = 0; i < n_vocab; i++) {
        const float x = (logits[i] - max + span) * codes;
        if (x > 0) row[PPL_ROW_HEAD + i] = (uint16_t)(x < CODES ? lrintf(x) : (long)CODES);
    }
    return nll_of(logits, max, log_all, token);
}

bool ppl_row_is_good(const uint16_t *row)
{
    float head[2];
    memcpy(head, row, sizeof head);
    const float high = head[1] + head[0] * CODES;  /* of the most likely token: 0 at most, and rounding */
    return head[0] >= 0 && head[0] * CODES < RANGE + 0.01F && head[1] > -100 && high < 0.01F;
}

ppl_point ppl_row_compare(const uint16_t *row, const float *logits, int32_t n_vocab, int32_t token)
{
    float head[2];
    memcpy(head, row, sizeof head);
    const uint16_t *code = row + PPL_ROW_HEAD;
    const int32_t top = argmax(logits, n_vocab);
    const double log_all = log_sum(logits, n_vocab, logits[top]);
    int32_t top_base = 0;
    double kl = 0;
    for (int32_t i = 0; i < n_vocab; i++) {
        if (code[i] > code[top_base]) top_base = i;
        const float log_p = head[1] + head[0] * (float)code[i];
        if (log_p > -RANGE) kl += (double)expf(log_p) * ((double)log_p + nll_of(logits, logits[top], log_all, i));
    }
    const double nll = nll_of(logits, logits[top], log_all, token), nll_base = -(double)(head[1] + head[0] * (float)code[token]);
    return (ppl_point){ .nll = nll, .nll_base = nll_base, .kl = kl, .dp = exp(-nll) - exp(-nll_base), .same_top = top == top_base };
}

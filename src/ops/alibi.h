/* Attention with linear biases (Press et al. 2022, "Train Short, Test Long"). */
#ifndef QN_OPS_ALIBI_H
#define QN_OPS_ALIBI_H

#include <math.h>
#include <stdint.h>

/**
 * By how much the scores of a head fall from one position to the next. Of n = 2^k heads head h has 2^(-max_bias (h + 1) / n); of other numbers, with n
 * the power of two below, the first n heads have those slopes and the rest every second one of 2 n heads, from the first on.
 * @param max_bias  -log2 of the last of n slopes, 8 as published
 */
static inline float qn_alibi_slope(float max_bias, int32_t n_head, int32_t head)
{
    int32_t n = 1;
    while (2 * n <= n_head) n *= 2;
    const double place = head < n ? (double)(head + 1) / n : (2 * (head - n) + 1) / (2.0 * n);
    return (float)exp2(-(double)max_bias * place);
}

#endif

/* What the level multiplies at most: a loop that touches no memory. */
#include "simd/scalar/scalar.h"

int64_t qn_peak_scalar(int64_t rounds)
{
    enum { N_SUMS = 8 }; /* independent chains hide the latency of a multiplication */
    int32_t sum[N_SUMS] = { 0 }, w = 3;
    for (int64_t i = 0; i < rounds; i++)
        for (int32_t j = 0; j < N_SUMS; j++) {
            __asm__ volatile("" : "+r"(w)); /* unknown to the compiler, or it would multiply once for all */
            sum[j] = (int32_t)((uint32_t)sum[j] + (uint32_t)(w * (j + 5)));
        }
    for (int32_t j = 0; j < N_SUMS; j++) __asm__ volatile("" : : "r"(sum[j]));
    return rounds * N_SUMS;
}

/* The multiply-add of the products, on registers: 16 chains of sdot; two make 16 multiply-adds of 16-bit activations. */
#include "simd/dotprod/level_dotprod.h"

int64_t qn_peak_dotprod(int64_t rounds)
{
    enum { N_SUMS = 16 };
    int32x4_t sum[N_SUMS];
    const int8x16_t w = vdupq_n_s8(3);
    for (int32_t i = 0; i < N_SUMS; i++) sum[i] = vdupq_n_s32(i);
    for (int64_t i = 0; i < rounds; i++) {
        QN_UNROLL
        for (int32_t j = 0; j < N_SUMS; j++) {
            sum[j] = vdotq_laneq_s32(sum[j], w, w, 0);
            QN_IN_ORDER(sum[j]);
        }
    }
    for (int32_t i = 0; i < N_SUMS; i++) QN_IN_ORDER(sum[i]);
    return rounds * N_SUMS * 8;
}

/* The multiply-add of the products, on registers: 16 chains of smlal, 4 multiply-adds each. */
#include "simd/neon/neon.h"

int64_t qn_peak_neon(int64_t rounds)
{
    enum { N_SUMS = 16 };
    int32x4_t sum[N_SUMS];
    int16x4_t w = vdup_n_s16(3);
    for (int32_t i = 0; i < N_SUMS; i++) sum[i] = vdupq_n_s32(i);
    for (int64_t i = 0; i < rounds; i++) {
        QN_UNROLL
        for (int32_t j = 0; j < N_SUMS; j++) {
            sum[j] = vmlal_s16(sum[j], w, w);
            QN_IN_ORDER(sum[j]);
        }
    }
    for (int32_t i = 0; i < N_SUMS; i++) QN_IN_ORDER(sum[i]);
    return rounds * N_SUMS * 4;
}

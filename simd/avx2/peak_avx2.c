#include "simd/avx2/avx2.h"

int64_t qn_peak_avx2(int64_t rounds)
{
    enum { N_SUMS = 8 }; /* four cycles of latency, two a cycle */
    __m256i sum[N_SUMS], w = _mm256_set1_epi16(1);
    QN_UNROLL
    for (int32_t j = 0; j < N_SUMS; j++) sum[j] = _mm256_setzero_si256();
    for (int64_t i = 0; i < rounds; i++) {
        QN_UNROLL
        for (int32_t j = 0; j < N_SUMS; j++) {
            QN_IN_ORDER(w); /* unknown to the compiler, or it would multiply once for all */
            sum[j] = _mm256_add_epi32(sum[j], _mm256_madd_epi16(w, w));
            QN_IN_ORDER(sum[j]);
        }
    }
    QN_UNROLL
    for (int32_t j = 0; j < N_SUMS; j++) QN_IN_ORDER(sum[j]);
    return rounds * N_SUMS * 16;
}

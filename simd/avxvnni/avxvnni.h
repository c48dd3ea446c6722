/* AVX-VNNI: the kernels of simd/avx2 with vpdpwssd and vpdpbusd. */
#ifndef QN_SIMD_AVXVNNI_H
#define QN_SIMD_AVXVNNI_H

#include "simd/avx2/matmul_a8_avx2.h"

QN_INLINE __m256i qn_dot_avxvnni(__m256i acc, __m256i w, __m256i q)
{
    return _mm256_dpwssd_avx_epi32(acc, w, q);
}

/* Unsigned weights, signed activations. */
QN_INLINE __m256i qn_dot8_avxvnni(__m256i acc, __m256i w, __m256i q)
{
    return _mm256_dpbusd_avx_epi32(acc, w, q);
}

QN_A8_LEVEL_AVX2(qn_a8_avxvnni, qn_dot8_avxvnni);

QN_INLINE void qn_matmul_a8_avxvnni(const qn_matmul_args *a, const a8_format *f)
{
    qn_matmul_a8_level_avx2(a, &qn_a8_avxvnni, f, qn_dot8_avxvnni);
}

int64_t qn_peak_avxvnni(int64_t rounds);

QN_DECLARE_PRODUCTS(avxvnni)

#endif

/* A8 products of AVX-512 without VNNI. */
#ifndef QN_SIMD_LEVEL_AVX512_H
#define QN_SIMD_LEVEL_AVX512_H

#include "simd/avx512/matmul_a8_avx512.h"

QN_A8_LEVEL_AVX512(qn_a8_avx512, NULL, 8);

QN_INLINE void qn_matmul8_avx512(const qn_matmul_args *a, const a8_format *f)
{
    qn_matmul_a8_avx512(a, &qn_a8_avx512, f, NULL);
}

#endif

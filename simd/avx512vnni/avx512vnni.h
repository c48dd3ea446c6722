/* AVX512_VNNI: the kernels of simd/avx512 with vpdpwssd and vpdpbusd. */
#ifndef QN_SIMD_AVX512VNNI_H
#define QN_SIMD_AVX512VNNI_H

#include "simd/avx512/matmul_a8_avx512.h"

/* Written out because gcc 12 does not take the broadcast into the instruction's operand. */
QN_INLINE __m512i qn_dot_avx512vnni(__m512i acc, __m512i w, const qn_pair *q)
{
    __asm__("vpdpwssd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(w), "m"(*q));
    return acc;
}

/* Unsigned weights, signed activations. */
QN_INLINE __m512i qn_dot8_avx512vnni(__m512i acc, __m512i w, const qn_pair *q)
{
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(w), "m"(*q));
    return acc;
}

QN_A8_LEVEL_AVX512(qn_a8_avx512vnni, qn_dot8_avx512vnni, TILE);

QN_INLINE void qn_matmul_a8_avx512vnni(const qn_matmul_args *a, const a8_format *f)
{
    qn_matmul_a8_avx512(a, &qn_a8_avx512vnni, f, qn_dot8_avx512vnni);
}

int64_t qn_peak_avx512vnni(int64_t rounds);

QN_DECLARE_PRODUCTS(avx512vnni)

#endif

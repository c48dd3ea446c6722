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

/* `run` of a row of the table. */
void qn_matmul_q4_0_avx512vnni(const qn_matmul_args *a);
void qn_matmul_q4_1_avx512vnni(const qn_matmul_args *a);
void qn_matmul_q5_0_avx512vnni(const qn_matmul_args *a);
void qn_matmul_q5_1_avx512vnni(const qn_matmul_args *a);
void qn_matmul_q8_0_avx512vnni(const qn_matmul_args *a);
void qn_matmul_q4_k_avx512vnni(const qn_matmul_args *a);
void qn_matmul_q5_k_avx512vnni(const qn_matmul_args *a);
void qn_matmul_q6_k_avx512vnni(const qn_matmul_args *a);
void qn_matmul_q2_k_avx512vnni(const qn_matmul_args *a);
void qn_matmul_q3_k_avx512vnni(const qn_matmul_args *a);
void qn_matmul_iq4_nl_avx512vnni(const qn_matmul_args *a);
void qn_matmul_iq4_xs_avx512vnni(const qn_matmul_args *a);
void qn_matmul_mxfp4_avx512vnni(const qn_matmul_args *a);

/* `run8`. */
void qn_matmul8_q4_0_avx512vnni(const qn_matmul_args *a);
void qn_matmul8_q4_1_avx512vnni(const qn_matmul_args *a);
void qn_matmul8_q5_0_avx512vnni(const qn_matmul_args *a);
void qn_matmul8_q5_1_avx512vnni(const qn_matmul_args *a);
void qn_matmul8_q8_0_avx512vnni(const qn_matmul_args *a);
void qn_matmul8_q4_k_avx512vnni(const qn_matmul_args *a);
void qn_matmul8_q5_k_avx512vnni(const qn_matmul_args *a);
void qn_matmul8_q6_k_avx512vnni(const qn_matmul_args *a);
void qn_matmul8_q2_k_avx512vnni(const qn_matmul_args *a);
void qn_matmul8_q3_k_avx512vnni(const qn_matmul_args *a);
void qn_matmul8_iq4_nl_avx512vnni(const qn_matmul_args *a);
void qn_matmul8_iq4_xs_avx512vnni(const qn_matmul_args *a);
void qn_matmul8_mxfp4_avx512vnni(const qn_matmul_args *a);

#endif

/* Shared by the AVX-512 kernels (F, BW, DQ, VL, CD): one panel line, or 16 columns, is one register. */
#ifndef QN_SIMD_AVX512_H
#define QN_SIMD_AVX512_H

#include "simd/avx2/avx2.h"

/* As QN_IN_ORDER, for any of the 32 registers. */
#define QN_IN_ORDER16(a) __asm__ volatile("" : "+v"(a))

/** 16 floats of 16 halves. */
QN_INLINE __m512 qn_load16_f16(const uint16_t *h)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)h));
}

/** 16 small integers as floats. */
QN_INLINE __m512 qn_load16_u8(const uint8_t *x)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)x)));
}

QN_INLINE __m512 qn_load16_i8(const int8_t *x)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)x)));
}

/** Lanes below left. */
QN_INLINE __mmask16 qn_mask16(int64_t left)
{
    return left >= 16 ? 0xffff : (__mmask16)((1u << left) - 1);
}

int64_t qn_peak_avx512(int64_t rounds);

/* `run` of a row of the table. */
void qn_matmul_q4_0_avx512(const qn_matmul_args *a);
void qn_matmul_q4_1_avx512(const qn_matmul_args *a);
void qn_matmul_q5_0_avx512(const qn_matmul_args *a);
void qn_matmul_q5_1_avx512(const qn_matmul_args *a);
void qn_matmul_q8_0_avx512(const qn_matmul_args *a);
void qn_matmul_q4_k_avx512(const qn_matmul_args *a);
void qn_matmul_q5_k_avx512(const qn_matmul_args *a);
void qn_matmul_q6_k_avx512(const qn_matmul_args *a);

#endif

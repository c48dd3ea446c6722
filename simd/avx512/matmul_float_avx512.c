/* F32, F16 and BF16 panels. */
#include "simd/avx512/matmul_float_avx512.h"

QN_INLINE __m512 load16_f32(const uint8_t *w)
{
    return _mm512_loadu_ps((const float *)w);
}

QN_INLINE __m512 load16_f16(const uint8_t *w)
{
    return qn_load16_f16((const uint16_t *)w);
}

QN_INLINE __m512 load16_bf16(const uint8_t *w)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)w)), 16));
}

static const float_format f32 = { load16_f32, 4 }, f16 = { load16_f16, 2 }, bf16 = { load16_bf16, 2 };

void qn_matmul_f32_avx512(const qn_matmul_args *a)
{
    qn_matmul_float_avx512(a, &f32);
}

void qn_matmul_f16_avx512(const qn_matmul_args *a)
{
    qn_matmul_float_avx512(a, &f16);
}

void qn_matmul_bf16_avx512(const qn_matmul_args *a)
{
    qn_matmul_float_avx512(a, &bf16);
}

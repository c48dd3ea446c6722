/* F32, F16 and BF16 panels. */
#include "simd/avx2/matmul_float_avx2.h"

QN_INLINE __m256 load8_f32(const uint8_t *w)
{
    return _mm256_loadu_ps((const float *)w);
}

QN_INLINE __m256 load8_f16(const uint8_t *w)
{
    return qn_load8_f16((const uint16_t *)w);
}

QN_INLINE __m256 load8_bf16(const uint8_t *w)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)w)), 16));
}

static const float_format f32 = { load8_f32, 4 }, f16 = { load8_f16, 2 }, bf16 = { load8_bf16, 2 };

void qn_matmul_f32_avx2(const qn_matmul_args *a)
{
    qn_matmul_float_avx2(a, &f32);
}

void qn_matmul_f16_avx2(const qn_matmul_args *a)
{
    qn_matmul_float_avx2(a, &f16);
}

void qn_matmul_bf16_avx2(const qn_matmul_args *a)
{
    qn_matmul_float_avx2(a, &bf16);
}

/* Activations to A16: a block of 32 is two registers. */
#include "simd/avx512/avx512.h"

#include <math.h>

static void quantize_block(__m512 a, __m512 b, int16_t *q, float *d, float *s)
{
    /* As integers the bits of |x| sort as the values do, Inf and NaN above all numbers. */
    const __m512i mask = _mm512_set1_epi32(0x7fffffff);
    const __m512i m = _mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(a), mask), _mm512_and_si512(_mm512_castps_si512(b), mask));
    const float amax = _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(_mm512_reduce_max_epi32(m))));
    __m512i i = _mm512_setzero_si512();
    *d = *s = amax <= 0x1.fffffep127f ? 0 : NAN;
    if (amax >= 1e-30f && amax <= 0x1.fffffep127f) {
        const __m512 inv = _mm512_set1_ps(QN_A16_MAX / amax);
        const __m512i lo = _mm512_cvtps_epi32(_mm512_mul_ps(a, inv)), hi = _mm512_cvtps_epi32(_mm512_mul_ps(b, inv));
        i = _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16(lo)), _mm512_cvtepi32_epi16(hi), 1);
        *d = amax / QN_A16_MAX;
        *s = *d * (float)_mm512_reduce_add_epi32(_mm512_add_epi32(lo, hi));
    }
    _mm512_storeu_si512(q, i);
}

void qn_quantize_a16_avx512(const float *x, int64_t n, int16_t *q, float *d, float *s)
{
    for (int64_t b = 0; b * QN_ACT_BLOCK < n; b++) {
        const int64_t at = b * QN_ACT_BLOCK, left = n - at;
        quantize_block(qn_load16(x + at, left), left > 16 ? qn_load16(x + at + 16, left - 16) : _mm512_setzero_ps(), q + at, d + b, s + b);
    }
}

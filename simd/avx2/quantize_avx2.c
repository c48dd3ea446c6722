/* Activations to A16. */
#include "simd/avx2/avx2.h"

#include <math.h>

/* Largest bit pattern of |x|: as integers they sort as the values do, Inf and NaN above all numbers. */
QN_INLINE float largest_abs(const __m256 *x)
{
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    __m256i m = _mm256_and_si256(_mm256_castps_si256(x[0]), mask);
    for (int32_t i = 1; i < 4; i++) m = _mm256_max_epi32(m, _mm256_and_si256(_mm256_castps_si256(x[i]), mask));
    __m128i a = _mm_max_epi32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
    a = _mm_max_epi32(a, _mm_shuffle_epi32(a, 0x4e));
    a = _mm_max_epi32(a, _mm_shuffle_epi32(a, 0xb1));
    return _mm_cvtss_f32(_mm_castsi128_ps(a));
}

QN_INLINE int32_t sum16(__m256i a, __m256i b)
{
    const __m256i one = _mm256_set1_epi16(1), s = _mm256_add_epi32(_mm256_madd_epi16(a, one), _mm256_madd_epi16(b, one));
    __m128i t = _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
    t = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0x4e));
    t = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0xb1));
    return _mm_cvtsi128_si32(t);
}

static void quantize_block(const __m256 *x, int16_t *q, float *d, float *s)
{
    const float amax = largest_abs(x);
    __m256i lo = _mm256_setzero_si256(), hi = lo;
    *d = *s = amax <= 0x1.fffffep127f ? 0 : NAN;
    if (amax >= 1e-30f && amax <= 0x1.fffffep127f) {
        const __m256 inv = _mm256_set1_ps(QN_A16_MAX / amax);
        __m256i i[4];
        for (int32_t j = 0; j < 4; j++) i[j] = _mm256_cvtps_epi32(_mm256_mul_ps(x[j], inv));
        lo = _mm256_permute4x64_epi64(_mm256_packs_epi32(i[0], i[1]), 0xd8);
        hi = _mm256_permute4x64_epi64(_mm256_packs_epi32(i[2], i[3]), 0xd8);
        *d = amax / QN_A16_MAX;
        *s = *d * (float)sum16(lo, hi);
    }
    _mm256_storeu_si256((__m256i *)q, lo);
    _mm256_storeu_si256((__m256i *)(q + 16), hi);
}

void qn_quantize_a16_avx2(const float *x, int64_t n, int16_t *q, float *d, float *s)
{
    for (int64_t b = 0; b * QN_ACT_BLOCK < n; b++) {
        const int64_t at = b * QN_ACT_BLOCK;
        __m256 v[4];
        for (int32_t j = 0; j < 4; j++) {
            const int64_t left = n - at - 8 * j;
            v[j] = left > 0 ? qn_load8(x + at + 8 * j, left) : _mm256_setzero_ps();
        }
        quantize_block(v, q + at, d + b, s + b);
    }
}

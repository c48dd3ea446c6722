/* Activations to A16 and A8. */
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

QN_INLINE int32_t sum8(__m256i s)
{
    __m128i t = _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
    t = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0x4e));
    t = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0xb1));
    return _mm_cvtsi128_si32(t);
}

/* 32 values to integers of up to `most`. */
QN_INLINE void quantize_block(const __m256 *x, const float most, __m256i *q, float *d, float *s)
{
    const float amax = largest_abs(x);
    *d = *s = amax <= 0x1.fffffep127f ? 0 : NAN;
    QN_UNROLL
    for (int32_t j = 0; j < 4; j++) q[j] = _mm256_setzero_si256();
    if (!(amax >= 1e-30f && amax <= 0x1.fffffep127f)) return;
    const __m256 inv = _mm256_set1_ps(most / amax);
    QN_UNROLL
    for (int32_t j = 0; j < 4; j++) q[j] = _mm256_cvtps_epi32(_mm256_mul_ps(x[j], inv));
    *d = amax / most;
    *s = *d * (float)sum8(_mm256_add_epi32(_mm256_add_epi32(q[0], q[1]), _mm256_add_epi32(q[2], q[3])));
}

/* The first `left` of 32 values, then zeros. */
QN_INLINE void load_block(const float *x, int64_t left, __m256 *out)
{
    QN_UNROLL
    for (int32_t j = 0; j < 4; j++) out[j] = left > 8 * j ? qn_load8(x + 8 * j, left - 8 * j) : _mm256_setzero_ps();
}

void qn_quantize_a16_avx2(const float *x, int64_t n, int16_t *q, float *d, float *s)
{
    for (int64_t at = 0; at < n; at += QN_ACT_BLOCK, q += QN_ACT_BLOCK) {
        __m256 v[4];
        __m256i i[4];
        load_block(x + at, n - at, v);
        quantize_block(v, QN_A16_MAX, i, d++, s++);
        _mm256_storeu_si256((__m256i *)q, _mm256_permute4x64_epi64(_mm256_packs_epi32(i[0], i[1]), 0xd8));
        _mm256_storeu_si256((__m256i *)(q + 16), _mm256_permute4x64_epi64(_mm256_packs_epi32(i[2], i[3]), 0xd8));
    }
}

/* Packing puts columns 0 .. 3 of each 8 into the lower half of a register, 4 .. 7 into the upper one: interleaved, they are in QN_A8_ORDER. */
void qn_quantize_a8_avx2(const float *x, int64_t n, int8_t *q, float *d, float *s)
{
    for (int64_t at = 0; at < n; at += QN_ACT_BLOCK, q += QN_ACT_BLOCK) {
        __m256 v[4];
        __m256i i[4];
        load_block(x + at, n - at, v);
        quantize_block(v, QN_A8_MAX, i, d++, s++);
        const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(i[0], i[1]), _mm256_packs_epi32(i[2], i[3]));
        const __m128i lo = _mm256_castsi256_si128(bytes), hi = _mm256_extracti128_si256(bytes, 1);
        _mm_storeu_si128((__m128i *)q, _mm_unpacklo_epi8(lo, hi));
        _mm_storeu_si128((__m128i *)(q + 16), _mm_unpackhi_epi8(lo, hi));
    }
}

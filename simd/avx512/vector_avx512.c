/* Sums, products, rotation, largest value. */
#include "simd/avx512/avx512.h"

#include <math.h>

void qn_add_avx512(const float *a, const float *b, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i += 16) qn_store16(out + i, n - i, _mm512_add_ps(qn_load16(a + i, n - i), qn_load16(b + i, n - i)));
}

void qn_scale_avx512(const float *x, float c, int64_t n, float *out)
{
    const __m512 f = _mm512_set1_ps(c);
    for (int64_t i = 0; i < n; i += 16) qn_store16(out + i, n - i, _mm512_mul_ps(qn_load16(x + i, n - i), f));
}

/* Pairs (i, i + half): c0 s0 c1 s1 ... is parted into c and s. */
static void rope_halves(float *x, const float *cos_sin, int32_t half)
{
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    for (int32_t i = 0; i < half; i += 16) {
        const int32_t left = half - i;
        const __m512 t0 = qn_load16(cos_sin + 2 * i, 2 * left), t1 = left > 8 ? qn_load16(cos_sin + 2 * i + 16, 2 * left - 16) : t0;
        const __m512 c = _mm512_permutex2var_ps(t0, even, t1), s = _mm512_permutex2var_ps(t0, odd, t1);
        const __m512 a = qn_load16(x + i, left), b = qn_load16(x + i + half, left);
        qn_store16(x + i, left, _mm512_fmsub_ps(a, c, _mm512_mul_ps(b, s)));
        qn_store16(x + i + half, left, _mm512_fmadd_ps(a, s, _mm512_mul_ps(b, c)));
    }
}

/* Pairs (2i, 2i + 1): a a.. times c s.., then b b.. times -s c.. */
static void rope_neighbours(float *x, const float *cos_sin, int32_t n_rot)
{
    for (int32_t i = 0; i < n_rot; i += 16) {
        const __m512 v = qn_load16(x + i, n_rot - i), cs = qn_load16(cos_sin + i, n_rot - i);
        const __m512 a = _mm512_moveldup_ps(v), b = _mm512_movehdup_ps(v), sc = _mm512_permute_ps(cs, 0xb1);
        qn_store16(x + i, n_rot - i, _mm512_fmaddsub_ps(a, cs, _mm512_mul_ps(b, sc)));
    }
}

void qn_rope_avx512(float *x, const float *cos_sin, int32_t n_rot, bool neox)
{
    if (neox) rope_halves(x, cos_sin, n_rot / 2);
    else rope_neighbours(x, cos_sin, n_rot);
}

/* The largest value first, then where it is: two quick passes beat one that carries indices. */
int64_t qn_argmax_avx512(const float *x, int64_t n)
{
    const __m512 least = _mm512_set1_ps(-INFINITY);
    __m512 max[4] = { least, least, least, least };
    int64_t i = 0;
    for (; i + 64 <= n; i += 64)
        for (int32_t j = 0; j < 4; j++) max[j] = _mm512_max_ps(_mm512_loadu_ps(x + i + 16 * j), max[j]);
    for (; i < n; i += 16) max[0] = _mm512_mask_max_ps(max[0], qn_mask16(n - i), qn_load16(x + i, n - i), max[0]);
    const __m512 top = _mm512_set1_ps(qn_max16_avx512(_mm512_max_ps(_mm512_max_ps(max[0], max[1]), _mm512_max_ps(max[2], max[3]))));
    for (i = 0; i < n; i += 16) {
        const __mmask16 hit = _mm512_mask_cmp_ps_mask(qn_mask16(n - i), qn_load16(x + i, n - i), top, _CMP_EQ_OQ);
        if (hit) return i + __builtin_ctz(hit);
    }
    return -1; /* nothing but NaN */
}

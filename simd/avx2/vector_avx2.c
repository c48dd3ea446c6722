/* Sums, products, rotation, largest value. */
#include "simd/avx2/avx2.h"

#include <math.h>

void qn_add_avx2(const float *a, const float *b, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i += 8)
        qn_store8(out + i, n - i, _mm256_add_ps(qn_load8(a + i, n - i), qn_load8(b + i, n - i)));
}

void qn_scale_avx2(const float *x, float c, int64_t n, float *out)
{
    const __m256 f = _mm256_set1_ps(c);
    for (int64_t i = 0; i < n; i += 8) qn_store8(out + i, n - i, _mm256_mul_ps(qn_load8(x + i, n - i), f));
}

/* Pairs (i, i + half): c0 s0 c1 s1 ... is parted into c and s. */
static void rope_halves(float *x, const float *cos_sin, int32_t half)
{
    for (int32_t i = 0; i < half; i += 8) {
        const int32_t left = half - i;
        const __m256 t0 = qn_load8(cos_sin + 2 * i, 2 * left), t1 = left > 4 ? qn_load8(cos_sin + 2 * i + 8, 2 * left - 8) : t0;
        const __m256i order = _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7);
        const __m256 c = _mm256_permutevar8x32_ps(_mm256_shuffle_ps(t0, t1, 0x88), order);
        const __m256 s = _mm256_permutevar8x32_ps(_mm256_shuffle_ps(t0, t1, 0xdd), order);
        const __m256 a = qn_load8(x + i, left), b = qn_load8(x + i + half, left);
        qn_store8(x + i, left, _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s)));
        qn_store8(x + i + half, left, _mm256_fmadd_ps(a, s, _mm256_mul_ps(b, c)));
    }
}

/* Pairs (2i, 2i + 1): a a.. times c s.., then b b.. times -s c.. */
static void rope_neighbours(float *x, const float *cos_sin, int32_t n_rot)
{
    const __m256 sign = _mm256_setr_ps(-0.0f, 0, -0.0f, 0, -0.0f, 0, -0.0f, 0);
    for (int32_t i = 0; i < n_rot; i += 8) {
        const __m256 v = qn_load8(x + i, n_rot - i), cs = qn_load8(cos_sin + i, n_rot - i);
        const __m256 a = _mm256_moveldup_ps(v), b = _mm256_movehdup_ps(v), sc = _mm256_permute_ps(cs, 0xb1);
        qn_store8(x + i, n_rot - i, _mm256_fmadd_ps(a, cs, _mm256_xor_ps(_mm256_mul_ps(b, sc), sign)));
    }
}

void qn_rope_avx2(float *x, const float *cos_sin, int32_t n_rot, bool neox)
{
    if (neox) rope_halves(x, cos_sin, n_rot / 2);
    else rope_neighbours(x, cos_sin, n_rot);
}

/* The largest value first, then where it is: two quick passes beat one that carries indices. */
int64_t qn_argmax_avx2(const float *x, int64_t n)
{
    const __m256 least = _mm256_set1_ps(-INFINITY);
    __m256 max[4] = { least, least, least, least };
    int64_t i = 0;
    for (; i + 32 <= n; i += 32)
        for (int32_t j = 0; j < 4; j++) max[j] = _mm256_max_ps(_mm256_loadu_ps(x + i + 8 * j), max[j]);
    for (; i < n; i += 8) {
        const __m256 in = _mm256_castsi256_ps(qn_mask8(n - i));
        max[0] = _mm256_max_ps(_mm256_blendv_ps(least, qn_load8(x + i, n - i), in), max[0]);
    }
    const __m256 top = _mm256_set1_ps(
        qn_max8_avx2(_mm256_max_ps(_mm256_max_ps(max[0], max[1]), _mm256_max_ps(max[2], max[3]))));
    for (i = 0; i < n; i += 8) {
        const __m256 in = _mm256_castsi256_ps(qn_mask8(n - i));
        const __m256 hit = _mm256_and_ps(in, _mm256_cmp_ps(qn_load8(x + i, n - i), top, _CMP_EQ_OQ));
        const int32_t bits = _mm256_movemask_ps(hit);
        if (bits) return i + __builtin_ctz((unsigned)bits);
    }
    return -1; /* nothing but NaN */
}

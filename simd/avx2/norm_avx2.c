/* Norms and softmax. The 16 lanes of a sum are two registers. */
#include "simd/avx2/avx2.h"

#include <math.h>

/* Lanes past n take no part: x - mean is not zero there. */
QN_INLINE __m256 centred(const float *x, int64_t left, __m256 mean)
{
    const __m256 v = _mm256_sub_ps(qn_load8(x, left), mean);
    return left >= 8 ? v : _mm256_and_ps(v, _mm256_castsi256_ps(qn_mask8(left < 0 ? 0 : left)));
}

static float sum_squares(const float *x, int64_t n, float mean)
{
    const __m256 m = _mm256_set1_ps(mean);
    __m256 lo = _mm256_setzero_ps(), hi = lo;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m256 a = _mm256_sub_ps(_mm256_loadu_ps(x + i), m), b = _mm256_sub_ps(_mm256_loadu_ps(x + i + 8), m);
        lo = _mm256_fmadd_ps(a, a, lo);
        hi = _mm256_fmadd_ps(b, b, hi);
    }
    if (i < n) {
        const __m256 a = centred(x + i, n - i, m), b = centred(x + i + 8, n - i - 8, m);
        lo = _mm256_fmadd_ps(a, a, lo);
        hi = _mm256_fmadd_ps(b, b, hi);
    }
    return qn_tree16_avx2(lo, hi);
}

static float sum(const float *x, int64_t n)
{
    __m256 lo = _mm256_setzero_ps(), hi = lo;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        lo = _mm256_add_ps(lo, _mm256_loadu_ps(x + i));
        hi = _mm256_add_ps(hi, _mm256_loadu_ps(x + i + 8));
    }
    if (i < n) {
        lo = _mm256_add_ps(lo, qn_load8(x + i, n - i));
        hi = _mm256_add_ps(hi, qn_load8(x + i + 8, n - i - 8));
    }
    return qn_tree16_avx2(lo, hi);
}

void qn_rms_norm_avx2(const float *x, const float *w, int64_t n, float eps, float *out)
{
    const __m256 r = _mm256_set1_ps(1.0f / sqrtf(sum_squares(x, n, 0) / (float)n + eps));
    for (int64_t i = 0; i < n; i += 8) {
        const __m256 v = _mm256_mul_ps(qn_load8(x + i, n - i), r);
        qn_store8(out + i, n - i, w ? _mm256_mul_ps(v, qn_load8(w + i, n - i)) : v);
    }
}

void qn_layer_norm_avx2(const float *x, const float *w, const float *b, int64_t n, float eps, float *out)
{
    const float mean = sum(x, n) / (float)n;
    const __m256 m = _mm256_set1_ps(mean), r = _mm256_set1_ps(1.0f / sqrtf(sum_squares(x, n, mean) / (float)n + eps));
    for (int64_t i = 0; i < n; i += 8) {
        __m256 v = _mm256_mul_ps(_mm256_sub_ps(qn_load8(x + i, n - i), m), r);
        if (w) v = _mm256_mul_ps(v, qn_load8(w + i, n - i));
        if (b) v = _mm256_add_ps(v, qn_load8(b + i, n - i));
        qn_store8(out + i, n - i, v);
    }
}

void qn_softmax_avx2(float *x, int64_t n)
{
    __m256 max = _mm256_set1_ps(-INFINITY);
    for (int64_t i = 0; i < n; i += 8) {
        const __m256 v = qn_load8(x + i, n - i), m = _mm256_castsi256_ps(qn_mask8(n - i));
        max = _mm256_max_ps(_mm256_blendv_ps(max, v, m), max); /* NaN is never larger */
    }
    const __m256 top = _mm256_set1_ps(qn_max8_avx2(max));
    for (int64_t i = 0; i < n; i += 8) qn_store8(x + i, n - i, qn_exp_avx2(_mm256_sub_ps(qn_load8(x + i, n - i), top)));
    const __m256 scale = _mm256_set1_ps(1.0f / sum(x, n));
    for (int64_t i = 0; i < n; i += 8) qn_store8(x + i, n - i, _mm256_mul_ps(qn_load8(x + i, n - i), scale));
}

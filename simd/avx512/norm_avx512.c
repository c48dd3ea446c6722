/* Norms and softmax. The 16 lanes of a sum are one register. */
#include "simd/avx512/avx512.h"

#include <math.h>

/* Lanes past n take no part: x - mean is not zero there. */
static float sum_squares(const float *x, int64_t n, float mean)
{
    const __m512 m = _mm512_set1_ps(mean);
    __m512 sum = _mm512_setzero_ps();
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m512 v = _mm512_sub_ps(_mm512_loadu_ps(x + i), m);
        sum = _mm512_fmadd_ps(v, v, sum);
    }
    if (i < n) {
        const __m512 v = _mm512_maskz_sub_ps(qn_mask16(n - i), qn_load16(x + i, n - i), m);
        sum = _mm512_fmadd_ps(v, v, sum);
    }
    return qn_tree16_avx512(sum);
}

static float sum(const float *x, int64_t n)
{
    __m512 s = _mm512_setzero_ps();
    for (int64_t i = 0; i < n; i += 16) s = _mm512_add_ps(s, qn_load16(x + i, n - i));
    return qn_tree16_avx512(s);
}

void qn_rms_norm_avx512(const float *x, const float *w, int64_t n, float eps, float *out)
{
    const __m512 r = _mm512_set1_ps(1.0f / sqrtf(sum_squares(x, n, 0) / (float)n + eps));
    for (int64_t i = 0; i < n; i += 16) {
        const __m512 v = _mm512_mul_ps(qn_load16(x + i, n - i), r);
        qn_store16(out + i, n - i, w ? _mm512_mul_ps(v, qn_load16(w + i, n - i)) : v);
    }
}

void qn_layer_norm_avx512(const float *x, const float *w, const float *b, int64_t n, float eps, float *out)
{
    const float mean = sum(x, n) / (float)n;
    const __m512 m = _mm512_set1_ps(mean), r = _mm512_set1_ps(1.0f / sqrtf(sum_squares(x, n, mean) / (float)n + eps));
    for (int64_t i = 0; i < n; i += 16) {
        __m512 v = _mm512_mul_ps(_mm512_sub_ps(qn_load16(x + i, n - i), m), r);
        if (w) v = _mm512_mul_ps(v, qn_load16(w + i, n - i));
        if (b) v = _mm512_add_ps(v, qn_load16(b + i, n - i));
        qn_store16(out + i, n - i, v);
    }
}

void qn_softmax_avx512(float *x, int64_t n)
{
    __m512 max = _mm512_set1_ps(-INFINITY);
    for (int64_t i = 0; i < n; i += 16) max = _mm512_mask_max_ps(max, qn_mask16(n - i), qn_load16(x + i, n - i), max); /* NaN is never larger */
    const __m512 top = _mm512_set1_ps(qn_max16_avx512(max));
    for (int64_t i = 0; i < n; i += 16) qn_store16(x + i, n - i, qn_exp_avx512(_mm512_sub_ps(qn_load16(x + i, n - i), top)));
    const __m512 scale = _mm512_set1_ps(1.0f / sum(x, n));
    for (int64_t i = 0; i < n; i += 16) qn_store16(x + i, n - i, _mm512_mul_ps(qn_load16(x + i, n - i), scale));
}

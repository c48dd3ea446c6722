/* Norms and softmax. Sums: element i goes to lane i mod 16, lanes are added in halves 8, 4, 2, 1. */
#include "simd/scalar/scalar.h"

#include <math.h>

float qn_tree16_scalar(const float *lane)
{
    float t[16];
    for (int32_t i = 0; i < 16; i++) t[i] = lane[i];
    for (int32_t half = 8; half > 0; half /= 2)
        for (int32_t i = 0; i < half; i++) t[i] += t[i + half];
    return t[0];
}

/* sum of (x - mean)^2 */
static float sum_squares(const float *x, int64_t n, float mean)
{
    float lane[16] = { 0 };
    for (int64_t i = 0; i < n; i++) {
        const float v = x[i] - mean;
        lane[i % 16] = fmaf(v, v, lane[i % 16]);
    }
    return qn_tree16_scalar(lane);
}

static float sum(const float *x, int64_t n)
{
    float lane[16] = { 0 };
    for (int64_t i = 0; i < n; i++) lane[i % 16] += x[i];
    return qn_tree16_scalar(lane);
}

void qn_rms_norm_scalar(const float *x, const float *w, int64_t n, float eps, float *out)
{
    const float r = 1.0f / sqrtf(sum_squares(x, n, 0) / (float)n + eps);
    for (int64_t i = 0; i < n; i++) out[i] = w ? x[i] * r * w[i] : x[i] * r;
}

void qn_layer_norm_scalar(const float *x, const float *w, const float *b, int64_t n, float eps, float *out)
{
    const float mean = sum(x, n) / (float)n;
    const float r = 1.0f / sqrtf(sum_squares(x, n, mean) / (float)n + eps);
    for (int64_t i = 0; i < n; i++) {
        float v = (x[i] - mean) * r;
        if (w) v *= w[i];
        if (b) v += b[i];
        out[i] = v;
    }
}

void qn_softmax_scalar(float *x, int64_t n)
{
    float max = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        if (x[i] > max) max = x[i];
    for (int64_t i = 0; i < n; i++) x[i] = qn_exp_scalar(x[i] - max);
    const float scale = 1.0f / sum(x, n);
    for (int64_t i = 0; i < n; i++) x[i] *= scale;
}

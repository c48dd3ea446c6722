/* Sums, products, rotation, look-ups: one pass over a vector. */
#include "simd/scalar/scalar.h"

#include <math.h>

void qn_add_scalar(const float *a, const float *b, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = a[i] + b[i];
}

void qn_scale_scalar(const float *x, float c, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = x[i] * c;
}

void qn_mul_scalar(const float *a, const float *b, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = a[i] * b[i];
}

void qn_clamp_scalar(const float *x, float most, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = x[i] < -most ? -most : x[i] > most ? most : x[i];
}

void qn_rope_scalar(float *x, const float *cos_sin, int32_t n_rot, bool neox)
{
    const int32_t half = n_rot / 2;
    for (int32_t i = 0; i < half; i++) {
        float *pa = neox ? x + i : x + 2 * i, *pb = neox ? x + i + half : x + 2 * i + 1;
        const float c = cos_sin[2 * i], s = cos_sin[2 * i + 1], a = *pa, b = *pb;
        *pa = fmaf(a, c, -(b * s));
        *pb = fmaf(a, s, b * c);
    }
}

int64_t qn_argmax_scalar(const float *x, int64_t n)
{
    int64_t best = -1;
    for (int64_t i = 0; i < n; i++)
        if (best < 0 ? x[i] == x[i] : x[i] > x[best]) best = i;
    return best;
}

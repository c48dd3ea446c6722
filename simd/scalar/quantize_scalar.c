/* Activations to A16: 32 at a time, 16-bit integers and one scale. */
#include "simd/scalar/scalar.h"

#include <math.h>

/* n <= 32 values; q[32] */
static void quantize_block(const float *x, int32_t n, int16_t *q, float *d, float *s)
{
    float amax = 0;
    bool finite = true;
    for (int32_t i = 0; i < n; i++) {
        finite = finite && isfinite(x[i]);
        if (fabsf(x[i]) > amax) amax = fabsf(x[i]);
    }
    for (int32_t i = 0; i < QN_ACT_BLOCK; i++) q[i] = 0;
    *d = *s = finite ? 0 : NAN;
    if (!finite || amax < 1e-30f) return;
    const float inv = QN_A16_MAX / amax;
    int32_t sum = 0;
    for (int32_t i = 0; i < n; i++) {
        q[i] = (int16_t)(x[i] * inv + 0x1.8p23f - 0x1.8p23f); /* to nearest even */
        sum += q[i];
    }
    *d = amax / QN_A16_MAX;
    *s = *d * (float)sum;
}

void qn_quantize_a16_scalar(const float *x, int64_t n, int16_t *q, float *d, float *s)
{
    for (int64_t b = 0; b * QN_ACT_BLOCK < n; b++) {
        const int64_t at = b * QN_ACT_BLOCK, left = n - at;
        quantize_block(x + at, (int32_t)(left < QN_ACT_BLOCK ? left : QN_ACT_BLOCK), q + at, d + b, s + b);
    }
}

/* Activations to A16 and A8: 32 at a time, integers and one scale. */
#include "simd/scalar/scalar.h"

#include <math.h>

/* n <= 32 values to integers of up to `most`; q[32] */
static void quantize_block(const float *x, int32_t n, float most, int32_t *q, float *d, float *s)
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
    const float inv = most / amax;
    int32_t sum = 0;
    for (int32_t i = 0; i < n; i++) {
        q[i] = (int32_t)(x[i] * inv + 0x1.8p23f - 0x1.8p23f); /* to nearest even */
        sum += q[i];
    }
    *d = amax / most;
    *s = *d * (float)sum;
}

void qn_quantize_a16_scalar(const float *x, int64_t n, int16_t *q, float *d, float *s)
{
    for (int64_t b = 0; b * QN_ACT_BLOCK < n; b++) {
        const int64_t at = b * QN_ACT_BLOCK, left = n - at;
        int32_t block[QN_ACT_BLOCK];
        quantize_block(x + at, (int32_t)(left < QN_ACT_BLOCK ? left : QN_ACT_BLOCK), QN_A16_MAX, block, d + b, s + b);
        for (int32_t i = 0; i < QN_ACT_BLOCK; i++) q[at + i] = (int16_t)block[i];
    }
}

void qn_quantize_a8_scalar(const float *x, int64_t n, int8_t *q, float *d, float *s)
{
    static const int8_t order[8] = QN_A8_ORDER;
    for (int64_t b = 0; b * QN_ACT_BLOCK < n; b++) {
        const int64_t at = b * QN_ACT_BLOCK, left = n - at;
        int32_t block[QN_ACT_BLOCK];
        quantize_block(x + at, (int32_t)(left < QN_ACT_BLOCK ? left : QN_ACT_BLOCK), QN_A8_MAX, block, d + b, s + b);
        for (int32_t i = 0; i < QN_ACT_BLOCK; i++) q[at + i] = (int8_t)block[i / 8 * 8 + order[i % 8]];
    }
}

/* Activations to A16. */
#include "simd/neon/neon.h"

#include <math.h>

/* Largest bit pattern of |x|: as integers they sort as the values do, Inf and NaN above all numbers. */
QN_INLINE float largest_abs(const float32x4_t *x)
{
    uint32x4_t m = vreinterpretq_u32_f32(vabsq_f32(x[0]));
    for (int32_t i = 1; i < 8; i++) m = vmaxq_u32(m, vreinterpretq_u32_f32(vabsq_f32(x[i])));
    const uint32_t bits = vmaxvq_u32(m);
    float amax;
    __builtin_memcpy(&amax, &bits, sizeof amax);
    return amax;
}

static void quantize_block(const float32x4_t *x, int16_t *q, float *d, float *s)
{
    const float amax = largest_abs(x);
    *d = *s = amax <= 0x1.fffffep127f ? 0 : NAN;
    if (!(amax >= 1e-30f && amax <= 0x1.fffffep127f)) {
        for (int32_t j = 0; j < 4; j++) vst1q_s16(q + 8 * j, vdupq_n_s16(0));
        return;
    }
    const float32x4_t inv = vdupq_n_f32(QN_A16_MAX / amax);
    int32x4_t sum = vdupq_n_s32(0);
    for (int32_t j = 0; j < 4; j++) {
        const int32x4_t lo = vcvtnq_s32_f32(vmulq_f32(x[2 * j], inv)), hi = vcvtnq_s32_f32(vmulq_f32(x[2 * j + 1], inv));
        sum = vaddq_s32(sum, vaddq_s32(lo, hi));
        vst1q_s16(q + 8 * j, vcombine_s16(vmovn_s32(lo), vmovn_s32(hi)));
    }
    *d = amax / QN_A16_MAX;
    *s = *d * (float)vaddvq_s32(sum);
}

void qn_quantize_a16_neon(const float *x, int64_t n, int16_t *q, float *d, float *s)
{
    for (int64_t b = 0; b * QN_ACT_BLOCK < n; b++) {
        const int64_t at = b * QN_ACT_BLOCK;
        float32x4_t v[8];
        for (int32_t j = 0; j < 8; j++) v[j] = qn_load4(x + at + 4 * j, n - at - 4 * j);
        quantize_block(v, q + at, d + b, s + b);
    }
}

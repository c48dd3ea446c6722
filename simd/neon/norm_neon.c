/* Norms and softmax. The 16 lanes of a sum are four registers. */
#include "simd/neon/neon.h"

#include <math.h>

static float sum_squares(const float *x, int64_t n, float mean)
{
    const float32x4_t m = vdupq_n_f32(mean);
    float32x4_t lane[4] = { vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0) };
    for (int64_t i = 0; i < n; i += 16) {
        QN_UNROLL
        for (int32_t j = 0; j < 4; j++) {
            const int64_t left = n - i - 4 * j;
            float32x4_t v = vsubq_f32(qn_load4(x + i + 4 * j, left), m);
            if (left < 4) v = vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(v), qn_mask4(left < 0 ? 0 : left))); /* no part past n */
            lane[j] = vfmaq_f32(lane[j], v, v);
        }
    }
    return qn_tree16_neon(lane);
}

static float sum(const float *x, int64_t n)
{
    float32x4_t lane[4] = { vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0) };
    for (int64_t i = 0; i < n; i += 16)
        QN_UNROLL
        for (int32_t j = 0; j < 4; j++) lane[j] = vaddq_f32(lane[j], qn_load4(x + i + 4 * j, n - i - 4 * j));
    return qn_tree16_neon(lane);
}

void qn_rms_norm_neon(const float *x, const float *w, int64_t n, float eps, float *out)
{
    const float32x4_t r = vdupq_n_f32(1.0f / sqrtf(sum_squares(x, n, 0) / (float)n + eps));
    for (int64_t i = 0; i < n; i += 4) {
        const float32x4_t v = vmulq_f32(qn_load4(x + i, n - i), r);
        qn_store4(out + i, n - i, w ? vmulq_f32(v, qn_load4(w + i, n - i)) : v);
    }
}

void qn_layer_norm_neon(const float *x, const float *w, const float *b, int64_t n, float eps, float *out)
{
    const float mean = sum(x, n) / (float)n;
    const float32x4_t m = vdupq_n_f32(mean), r = vdupq_n_f32(1.0f / sqrtf(sum_squares(x, n, mean) / (float)n + eps));
    for (int64_t i = 0; i < n; i += 4) {
        float32x4_t v = vmulq_f32(vsubq_f32(qn_load4(x + i, n - i), m), r);
        if (w) v = vmulq_f32(v, qn_load4(w + i, n - i));
        if (b) v = vaddq_f32(v, qn_load4(b + i, n - i));
        qn_store4(out + i, n - i, v);
    }
}

void qn_softmax_neon(float *x, int64_t n)
{
    float32x4_t max = vdupq_n_f32(-INFINITY);
    for (int64_t i = 0; i < n; i += 4) {
        const float32x4_t v = qn_load4(x + i, n - i);
        max = qn_larger(n - i < 4 ? vbslq_f32(qn_mask4(n - i), v, max) : v, max);
    }
    const float32x4_t top = vdupq_n_f32(vmaxvq_f32(max));
    for (int64_t i = 0; i < n; i += 4) qn_store4(x + i, n - i, qn_exp_neon(vsubq_f32(qn_load4(x + i, n - i), top)));
    const float32x4_t scale = vdupq_n_f32(1.0f / sum(x, n));
    for (int64_t i = 0; i < n; i += 4) qn_store4(x + i, n - i, vmulq_f32(qn_load4(x + i, n - i), scale));
}

/* Activations, gated and plain, exp and the soft cap. */
#include "simd/neon/neon.h"

QN_INLINE float32x4_t silu(float32x4_t x)
{
    return vdivq_f32(x, vaddq_f32(vdupq_n_f32(1.0f), qn_exp_neon(vnegq_f32(x))));
}

QN_INLINE float32x4_t gelu(float32x4_t x)
{
    const float32x4_t cx2 = vmulq_f32(vmulq_f32(vdupq_n_f32(0.044715f), x), x), inner = vfmaq_f32(x, cx2, x);
    const float32x4_t e = qn_exp_neon(vmulq_f32(vdupq_n_f32(-1.5957691216f), inner));
    return vdivq_f32(x, vaddq_f32(vdupq_n_f32(1.0f), e));
}

void qn_silu_array_neon(const float *x, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i += 4) qn_store4(out + i, n - i, silu(qn_load4(x + i, n - i)));
}

void qn_gelu_array_neon(const float *x, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i += 4) qn_store4(out + i, n - i, gelu(qn_load4(x + i, n - i)));
}

void qn_exp_array_neon(const float *x, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i += 4) qn_store4(out + i, n - i, qn_exp_neon(qn_load4(x + i, n - i)));
}

void qn_softcap_neon(const float *x, float cap, int64_t n, float *out)
{
    const float32x4_t c = vdupq_n_f32(cap);
    for (int64_t i = 0; i < n; i += 4) qn_store4(out + i, n - i, vmulq_f32(c, qn_tanh_neon(vdivq_f32(qn_load4(x + i, n - i), c))));
}

void qn_swiglu_neon(const float *gate, const float *up, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i += 4) qn_store4(out + i, n - i, vmulq_f32(silu(qn_load4(gate + i, n - i)), qn_load4(up + i, n - i)));
}

void qn_geglu_neon(const float *gate, const float *up, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i += 4) qn_store4(out + i, n - i, vmulq_f32(gelu(qn_load4(gate + i, n - i)), qn_load4(up + i, n - i)));
}

/* Activations and their gated forms, the soft cap. */
#include "simd/scalar/scalar.h"

#include <math.h>

float qn_silu_scalar(float x)
{
    return x / (1.0f + qn_exp_scalar(-x));
}

/* x (1 + tanh u) / 2 = x / (1 + exp(-2u)), u = sqrt(2 / pi) (x + 0.044715 x^3): without the cancellation of 1 + tanh for negative x. */
static float gelu(float x)
{
    const float inner = fmaf(0.044715f * x * x, x, x);
    return x / (1.0f + qn_exp_scalar(-1.5957691216f * inner));
}

void qn_silu_array_scalar(const float *x, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = qn_silu_scalar(x[i]);
}

void qn_gelu_array_scalar(const float *x, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = gelu(x[i]);
}

void qn_sigmoid_array_scalar(const float *x, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = 1.0f / (1.0f + qn_exp_scalar(-x[i]));
}

/* s = u / (u + 2) is at most 1/3: the series of artanh to s^15, what is left out is below 1.4e-9 of it. */
static float log1p_unit(float u)
{
    const float s = u / (u + 2.0f), z = s * s;
    float p = fmaf(0x1.111112p-4f, z, 0x1.3b13b2p-4f); /* 1/15, 1/13 */
    p = fmaf(p, z, 0x1.745d18p-4f);                    /* 1/11 */
    p = fmaf(p, z, 0x1.c71c72p-4f);                    /* 1/9 */
    p = fmaf(p, z, 0x1.24924ap-3f);                    /* 1/7 */
    p = fmaf(p, z, 0x1.99999ap-3f);                    /* 1/5 */
    p = fmaf(p, z, 0x1.555556p-2f);                    /* 1/3 */
    return 2.0f * fmaf(p * z, s, s);
}

void qn_softplus_array_scalar(const float *x, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) {
        const float larger = x[i] > 0 ? x[i] : 0;
        out[i] = larger + log1p_unit(qn_exp_scalar(-fabsf(x[i])));
    }
}

void qn_relu_scalar(const float *x, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = x[i] < 0 ? 0 : x[i];
}

void qn_relu_sqr_scalar(const float *x, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = x[i] < 0 ? 0 : x[i] * x[i];
}

void qn_softcap_scalar(const float *x, float cap, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = cap * qn_tanh_scalar(x[i] / cap);
}

void qn_swiglu_scalar(const float *gate, const float *up, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = qn_silu_scalar(gate[i]) * up[i];
}

void qn_geglu_scalar(const float *gate, const float *up, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = gelu(gate[i]) * up[i];
}

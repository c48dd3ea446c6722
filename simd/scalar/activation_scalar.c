/* Activations and their gated forms, the soft cap. */
#include "simd/scalar/scalar.h"

#include <math.h>

static float silu(float x)
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
    for (int64_t i = 0; i < n; i++) out[i] = silu(x[i]);
}

void qn_gelu_array_scalar(const float *x, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = gelu(x[i]);
}

void qn_softcap_scalar(const float *x, float cap, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = cap * qn_tanh_scalar(x[i] / cap);
}

void qn_swiglu_scalar(const float *gate, const float *up, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = silu(gate[i]) * up[i];
}

void qn_geglu_scalar(const float *gate, const float *up, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = gelu(gate[i]) * up[i];
}

#include "src/ops/glu.h"

#include "src/base/half.h"

typedef void unary_fn(const float *x, int64_t n, float *out);

/* The half float next to x, ties to even, where that is below 10; the others stay. Adding 1.5 * 2^(e + 13) leaves ten bits behind the exponent e. */
static void round_to_half(const float *x, int64_t n, float *out)
{
    const int32_t exponent = 0x7f800000, least_normal = 0x38800000;
    for (int64_t i = 0; i < n; i++) {
        const int32_t own = (int32_t)qn_f32_bits(x[i]) & exponent, e = own > least_normal ? own : least_normal;
        const float big = qn_f32_from_bits(((uint32_t)e + (13u << 23)) | 0x400000), rounded = (x[i] + big) - big;
        out[i] = x[i] > -10 && x[i] < 10 ? rounded : x[i];
    }
}

/* What a table of all half floats gives. */
static void gelu_half(const qn_kernels *k, const float *x, int64_t n, float *out)
{
    round_to_half(x, n, out);
    k->gelu(out, n, out);
    round_to_half(out, n, out);
}

void qn_unary_row(const qn_kernels *k, qn_unary act, const float *x, int64_t n, float *out)
{
    unary_fn *const fns[] = {
        [QN_UNARY_SILU] = k->silu, [QN_UNARY_GELU] = k->gelu, [QN_UNARY_RELU] = k->relu, [QN_UNARY_RELU_SQR] = k->relu_sqr,
    };
    if (act == QN_UNARY_GELU_HALF) gelu_half(k, x, n, out);
    else fns[act](x, n, out);
}

/* OpenAI 2025 (gpt-oss): gate at most 7, up within 7 of zero; x * sigmoid(1.702 x) of the gate, times up + 1. */
static void clamped(const qn_kernels *k, float *gate, const float *up, int64_t n, float *out)
{
    const float limit = 7, alpha = 1.702f;
    for (int64_t i = 0; i < n; i++) gate[i] = alpha * (gate[i] > limit ? limit : gate[i]);
    k->silu(gate, n, gate);
    for (int64_t i = 0; i < n; i++) {
        const float u = up[i] > limit ? limit : up[i] < -limit ? -limit : up[i];
        out[i] = gate[i] / alpha * (u + 1);
    }
}

void qn_glu_row(const qn_kernels *k, qn_unary act, float *gate, const float *up, int64_t n, float *out)
{
    switch (act) {
    case QN_UNARY_SILU: k->swiglu(gate, up, n, out); break;
    case QN_UNARY_GELU: k->geglu(gate, up, n, out); break;
    case QN_UNARY_CLAMPED: clamped(k, gate, up, n, out); break;
    default:
        qn_unary_row(k, act, gate, n, gate);
        k->mul(gate, up, n, out);
    }
}

void qn_glu_limited_row(const qn_kernels *k, float most, float *gate, float *up, int64_t n, float *out)
{
    k->silu(gate, n, gate);
    for (int64_t i = 0; i < n; i++) gate[i] = gate[i] > most ? most : gate[i];
    k->clamp(up, most, n, up);
    k->mul(gate, up, n, out);
}

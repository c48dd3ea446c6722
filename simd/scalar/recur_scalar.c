/* Layers with a state, as simd/kernels.h defines them. */
#include "simd/scalar/scalar.h"

#include <math.h>

void qn_conv_scalar(const qn_conv_args *a)
{
    for (int64_t c = 0; c < a->n; c++) {
        float acc = a->bias ? a->bias[c] : 0;
        for (int32_t i = 0; i < a->n_taps; i++) acc = fmaf(a->w[i * a->w_stride + c], a->rows[i][c], acc);
        a->out[c] = a->silu ? qn_silu_scalar(acc) : acc;
    }
}

static float join4(const float *chain)
{
    return (chain[0] + chain[2]) + (chain[1] + chain[3]);
}

/* One column of a head's state, S[i] at s[16 i], over one token. */
static float scan_column(const qn_scan_args *a, int32_t t, int32_t j, float *s)
{
    const float *q = a->q + t * a->qk_stride, *k = a->k + t * a->qk_stride, decay = a->decay[t];
    float brought[4] = { 0 }, seen[4] = { 0 }, v = a->v[t * a->v_stride + j];
    if (a->delta) {
        for (int32_t i = 0; i < a->d_k; i++) brought[i % 4] = fmaf(k[i], s[i * QN_STATE_LANES], brought[i % 4]);
        v -= decay * join4(brought);
    }
    const float u = a->rate[t] * v;
    for (int32_t i = 0; i < a->d_k; i++) {
        float *cell = s + i * QN_STATE_LANES;
        *cell = fmaf(k[i], u, *cell * decay);
        seen[i % 4] = fmaf(q[i], *cell, seen[i % 4]);
    }
    return join4(seen);
}

void qn_scan_scalar(const qn_scan_args *a)
{
    for (int32_t j = 0; j < a->d_v; j++) {
        float *s = a->state + (int64_t)(j / QN_STATE_LANES) * a->d_k * QN_STATE_LANES + j % QN_STATE_LANES;
        for (int32_t t = 0; t < a->n_tokens; t++) a->out[t * a->out_stride + j] = scan_column(a, t, j, s);
    }
}

static float selective_channel(const qn_selective_args *a, int32_t t, int64_t ch, float *h)
{
    const float *b = a->b + t * a->bc_stride, *c = a->c + t * a->bc_stride;
    const float dt = a->dt[t * a->dt_stride + ch], moved = a->x[t * a->x_stride + ch] * dt;
    float y = 0;
    for (int32_t s = 0; s < a->d_state; s++) {
        float *cell = h + s * QN_STATE_LANES;
        *cell = fmaf(*cell, qn_exp_scalar(dt * a->a[s * a->a_stride + ch]), b[s] * moved);
        y = fmaf(*cell, c[s], y);
    }
    return y;
}

void qn_selective_scalar(const qn_selective_args *a)
{
    for (int64_t ch = 0; ch < a->n; ch++) {
        float *h = a->state + ch / QN_STATE_LANES * a->d_state * QN_STATE_LANES + ch % QN_STATE_LANES;
        for (int32_t t = 0; t < a->n_tokens; t++) a->out[t * a->out_stride + ch] = selective_channel(a, t, ch, h);
    }
}

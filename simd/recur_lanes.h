/**
 * Layers with a state, sixteen lanes at a time, for every level whose vectors have fma.
 *
 * Whoever includes this has defined qn_v16, sixteen floats, and for it: qn_v16_set (all lanes), qn_v16_load and qn_v16_store (whole), qn_v16_head and
 * qn_v16_put (the first `left` lanes: others are zeros, or stay), qn_v16_add, _sub, _mul, _div, qn_v16_fma(a, b, c) = a * b + c, qn_v16_exp,
 * qn_v16_neg, qn_v16_abs, qn_v16_max0 (0 where x is NaN), and QN_INLINE. The functions' names end in QN_LEVEL.
 */
#ifndef QN_SIMD_RECUR_LANES_H
#define QN_SIMD_RECUR_LANES_H

#include "simd/kernels.h"

#define QN_NAMED_(f, level) f##_##level
#define QN_NAMED(f, level) QN_NAMED_(f, level)
#define QN_OF_LEVEL(f) QN_NAMED(f, QN_LEVEL)

QN_INLINE qn_v16 qn_v16_sigmoid(qn_v16 x)
{
    const qn_v16 one = qn_v16_set(1.0f);
    return qn_v16_div(one, qn_v16_add(one, qn_v16_exp(qn_v16_neg(x))));
}

QN_INLINE qn_v16 qn_v16_silu(qn_v16 x)
{
    return qn_v16_div(x, qn_v16_add(qn_v16_set(1.0f), qn_v16_exp(qn_v16_neg(x))));
}

/* simd/scalar/activation_scalar.c's steps */
QN_INLINE qn_v16 qn_v16_softplus(qn_v16 x)
{
    const qn_v16 u = qn_v16_exp(qn_v16_neg(qn_v16_abs(x))), s = qn_v16_div(u, qn_v16_add(u, qn_v16_set(2.0f))), z = qn_v16_mul(s, s);
    qn_v16 p = qn_v16_fma(qn_v16_set(0x1.111112p-4f), z, qn_v16_set(0x1.3b13b2p-4f));
    p = qn_v16_fma(p, z, qn_v16_set(0x1.745d18p-4f));
    p = qn_v16_fma(p, z, qn_v16_set(0x1.c71c72p-4f));
    p = qn_v16_fma(p, z, qn_v16_set(0x1.24924ap-3f));
    p = qn_v16_fma(p, z, qn_v16_set(0x1.99999ap-3f));
    p = qn_v16_fma(p, z, qn_v16_set(0x1.555556p-2f));
    const qn_v16 log1p = qn_v16_mul(qn_v16_set(2.0f), qn_v16_fma(qn_v16_mul(p, z), s, s));
    return qn_v16_add(qn_v16_max0(x), log1p);
}

void QN_OF_LEVEL(qn_sigmoid_array)(const float *x, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i += 16) qn_v16_put(out + i, n - i, qn_v16_sigmoid(qn_v16_head(x + i, n - i)));
}

void QN_OF_LEVEL(qn_softplus_array)(const float *x, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i += 16) qn_v16_put(out + i, n - i, qn_v16_softplus(qn_v16_head(x + i, n - i)));
}

void QN_OF_LEVEL(qn_conv)(const qn_conv_args *a)
{
    for (int64_t c = 0; c < a->n; c += 16) {
        const int64_t left = a->n - c;
        qn_v16 acc = a->bias ? qn_v16_head(a->bias + c, left) : qn_v16_set(0);
        for (int32_t i = 0; i < a->n_taps; i++)
            acc = qn_v16_fma(qn_v16_head(a->w + i * a->w_stride + c, left), qn_v16_head(a->rows[i] + c, left), acc);
        qn_v16_put(a->out + c, left, a->silu ? qn_v16_silu(acc) : acc);
    }
}

/* Four chains of a sum, and their joining. */
typedef struct qn_chains {
    qn_v16 c[4];
} qn_chains;

QN_INLINE qn_v16 qn_chains_join(const qn_chains *x)
{
    return qn_v16_add(qn_v16_add(x->c[0], x->c[2]), qn_v16_add(x->c[1], x->c[3]));
}

/* What the key brings out of sixteen columns. */
QN_INLINE qn_v16 qn_scan_brought(const float *s, const float *k, int32_t d_k)
{
    qn_chains sum = { { qn_v16_set(0), qn_v16_set(0), qn_v16_set(0), qn_v16_set(0) } };
    int32_t i = 0;
    for (; i + 4 <= d_k; i += 4) {
        QN_UNROLL
        for (int32_t m = 0; m < 4; m++) sum.c[m] = qn_v16_fma(qn_v16_set(k[i + m]), qn_v16_load(s + (i + m) * 16), sum.c[m]);
    }
    QN_UNROLL
    for (int32_t m = 0; m < 3; m++)
        if (i + m < d_k) sum.c[m] = qn_v16_fma(qn_v16_set(k[i + m]), qn_v16_load(s + (i + m) * 16), sum.c[m]);
    return qn_chains_join(&sum);
}

QN_INLINE qn_v16 qn_scan_cell(float *s, float k, float q, qn_v16 u, qn_v16 decay, qn_v16 sum)
{
    const qn_v16 cell = qn_v16_fma(qn_v16_set(k), u, qn_v16_mul(qn_v16_load(s), decay));
    qn_v16_store(s, cell);
    return qn_v16_fma(qn_v16_set(q), cell, sum);
}

/* The columns move on by u. */
QN_INLINE qn_v16 qn_scan_move(float *s, const float *k, const float *q, int32_t d_k, qn_v16 u, qn_v16 decay)
{
    qn_chains sum = { { qn_v16_set(0), qn_v16_set(0), qn_v16_set(0), qn_v16_set(0) } };
    int32_t i = 0;
    for (; i + 4 <= d_k; i += 4) {
        QN_UNROLL
        for (int32_t m = 0; m < 4; m++) sum.c[m] = qn_scan_cell(s + (i + m) * 16, k[i + m], q[i + m], u, decay, sum.c[m]);
    }
    QN_UNROLL
    for (int32_t m = 0; m < 3; m++)
        if (i + m < d_k) sum.c[m] = qn_scan_cell(s + (i + m) * 16, k[i + m], q[i + m], u, decay, sum.c[m]);
    return qn_chains_join(&sum);
}

QN_INLINE void qn_scan_tile(const qn_scan_args *a, float *s, int32_t j, const bool delta)
{
    const int64_t left = a->d_v - j;
    for (int32_t t = 0; t < a->n_tokens; t++) {
        const float *q = a->q + t * a->qk_stride, *k = a->k + t * a->qk_stride;
        const qn_v16 decay = qn_v16_set(a->decay[t]);
        qn_v16 v = qn_v16_head(a->v + t * a->v_stride + j, left);
        if (delta) v = qn_v16_sub(v, qn_v16_mul(decay, qn_scan_brought(s, k, a->d_k)));
        const qn_v16 u = qn_v16_mul(qn_v16_set(a->rate[t]), v);
        qn_v16_put(a->out + t * a->out_stride + j, left, qn_scan_move(s, k, q, a->d_k, u, decay));
    }
}

/* A tile of columns goes through all tokens while it is in the nearest cache. */
void QN_OF_LEVEL(qn_scan)(const qn_scan_args *a)
{
    for (int32_t j = 0; j < a->d_v; j += 16) {
        float *s = a->state + (int64_t)j * a->d_k;
        if (a->delta) qn_scan_tile(a, s, j, true);
        else qn_scan_tile(a, s, j, false);
    }
}

QN_INLINE void qn_selective_tile(const qn_selective_args *a, float *h, int64_t ch)
{
    const int64_t left = a->n - ch;
    for (int32_t t = 0; t < a->n_tokens; t++) {
        const float *b = a->b + t * a->bc_stride, *c = a->c + t * a->bc_stride;
        const qn_v16 dt = qn_v16_head(a->dt + t * a->dt_stride + ch, left);
        const qn_v16 moved = qn_v16_mul(qn_v16_head(a->x + t * a->x_stride + ch, left), dt);
        qn_v16 y = qn_v16_set(0);
        for (int32_t s = 0; s < a->d_state; s++) {
            const qn_v16 keeps = qn_v16_exp(qn_v16_mul(dt, qn_v16_head(a->a + s * a->a_stride + ch, left)));
            const qn_v16 cell = qn_v16_fma(qn_v16_load(h + s * 16), keeps, qn_v16_mul(qn_v16_set(b[s]), moved));
            qn_v16_store(h + s * 16, cell);
            y = qn_v16_fma(cell, qn_v16_set(c[s]), y);
        }
        qn_v16_put(a->out + t * a->out_stride + ch, left, y);
    }
}

void QN_OF_LEVEL(qn_selective)(const qn_selective_args *a)
{
    for (int64_t ch = 0; ch < a->n; ch += 16) qn_selective_tile(a, a->state + ch * a->d_state, ch);
}

#endif

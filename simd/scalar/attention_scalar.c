/* Attention of query rows over one KV head, as simd/kernels.h defines it: a span of keys, then of values, is widened into the scratch memory. */
#include "simd/scalar/scalar.h"

#include <math.h>
#include <stdlib.h>

typedef struct row_state {
    float m, l;  /* largest score so far; sum of exp(score - m) */
    float *o;    /* [head_dim_v] */
} row_state;

/* Row i and position p; k: the position's column of a block. */
static float score(const qn_attn_args *a, int32_t i, int32_t p, const float *k)
{
    const float *q = a->q + i * a->q_stride;
    float s = 0;
    for (int32_t d = 0; d < a->head_dim; d++) s = fmaf(q[d], k[d * QN_KV_BLOCK], s);
    if (a->softcap > 0) s = a->softcap * qn_tanh_scalar(s / a->softcap);
    return a->slope ? fmaf(-a->slope[i], (float)abs(p - a->at[i]), s) : s;
}

/* A new maximum: what was summed before shrinks. */
static void rescale(row_state *st, float max, int32_t n)
{
    const float c = qn_exp_scalar(st->m - max);
    st->m = max;
    st->l *= c;
    for (int32_t d = 0; d < n; d++) st->o[d] *= c;
}

/* Row i at positions [from, to] of one span. */
static void span_add(const qn_attn_args *a, int32_t i, int32_t from, int32_t to, row_state *st)
{
    float s[QN_ATTN_SPAN], lane[QN_KV_BLOCK] = { 0 }, max = st->m, *x = a->scratch;
    const int32_t base = from / QN_ATTN_SPAN * QN_ATTN_SPAN, b0 = base / QN_KV_BLOCK;
    for (int32_t b = from / QN_KV_BLOCK; b <= to / QN_KV_BLOCK; b++)
        a->k_row->load_k(a->k_blocks[b], a->head_dim, x + (b - b0) * QN_KV_BLOCK * a->head_dim);
    for (int32_t p = from; p <= to; p++) {
        s[p - base] = score(a, i, p, x + (p / QN_KV_BLOCK - b0) * QN_KV_BLOCK * a->head_dim + p % QN_KV_BLOCK);
        if (s[p - base] > max) max = s[p - base];
    }
    rescale(st, max, a->head_dim_v);
    for (int32_t b = from / QN_KV_BLOCK; b <= to / QN_KV_BLOCK; b++)
        a->v_row->load_v(a->v_blocks[b], a->head_dim_v, x + (b - b0) * QN_KV_BLOCK * a->head_dim_v);
    for (int32_t p = from; p <= to; p++) {
        const float w = qn_exp_scalar(s[p - base] - max);
        const float *v = x + (p - base) * a->head_dim_v;
        lane[p % QN_KV_BLOCK] += w;
        for (int32_t d = 0; d < a->head_dim_v; d++) st->o[d] = fmaf(w, v[d], st->o[d]);
    }
    st->l += qn_tree16_scalar(lane);
}

void qn_attention_scalar(const qn_attn_args *a)
{
    for (int32_t i = 0; i < a->n_q; i++) {
        row_state st = { -INFINITY, 0, a->o + i * a->o_stride };
        for (int32_t d = 0; d < a->head_dim_v; d++) st.o[d] = 0;
        for (int32_t from = a->first[i]; from <= a->last[i];) {
            const int32_t end = from / QN_ATTN_SPAN * QN_ATTN_SPAN + QN_ATTN_SPAN - 1, to = end < a->last[i] ? end : a->last[i];
            span_add(a, i, from, to, &st);
            from = to + 1;
        }
        a->m[i] = st.m;
        a->l[i] = st.l;
    }
}

/**
 * Attention: up to 6 query rows share each load of K and V. Scores have positions in the lanes (K blocks are [head_dim][16]), values have
 * head_dim in the lanes. What one row sees is never mixed with what another sees: values a row is not to see are left out, not weighted by zero.
 */
#include "simd/neon/neon.h"

#include <math.h>

enum { MAX_TILE = 6, SPAN_BLOCKS = QN_ATTN_SPAN / QN_KV_BLOCK, MAX_SUMS = 24 /* of 32 registers */ };

typedef struct tile {
    const qn_attn_args *a;
    int32_t row, n;                         /* rows [row, row + n) of the call           */
    float m[MAX_TILE], l[MAX_TILE];
    int32_t lo[MAX_TILE], hi[MAX_TILE];     /* positions of this span; empty: lo > hi    */
    float *s;                               /* [MAX_TILE][QN_ATTN_SPAN] scores, then weights */
} tile;

QN_INLINE float *row_out(const tile *t, int32_t r)
{
    return t->a->o + (t->row + r) * t->a->o_stride;
}

/* acc[r][i] = fma(w[r], v[i], acc[r][i]) for R numbers and N times 8 halves. */
QN_INLINE void outer_add(float32x4_t *acc, const float *const *w, const uint16_t *const *v, const int32_t R, const int32_t N)
{
    QN_UNROLL
    for (int32_t i = 0; i < N; i++) {
        const float16x8_t h = vreinterpretq_f16_u16(vld1q_u16(v[i]));
        const float32x4_t lo = vcvt_f32_f16(vget_low_f16(h)), hi = vcvt_high_f32_f16(h);
        QN_UNROLL
        for (int32_t r = 0; r < R; r++) {
            float32x4_t *at = acc + 2 * (r * N + i);
            at[0] = vfmaq_n_f32(at[0], lo, *w[r]);
            at[1] = vfmaq_n_f32(at[1], hi, *w[r]);
        }
    }
}

/* Scores of R rows and B neighbouring blocks. */
QN_INLINE void scores_block(const tile *t, int32_t block, const int32_t R, const int32_t B)
{
    const qn_attn_args *a = t->a;
    const int32_t head_dim = a->head_dim;
    const float *q[MAX_TILE];
    const uint16_t *k[8];
    float32x4_t acc[MAX_SUMS];
    QN_UNROLL
    for (int32_t r = 0; r < R; r++) q[r] = a->q + (t->row + r) * a->q_stride;
    QN_UNROLL
    for (int32_t i = 0; i < 2 * B; i++) k[i] = (const uint16_t *)a->k_blocks[block + i / 2] + i % 2 * 8;
    QN_UNROLL
    for (int32_t i = 0; i < R * B * 4; i++) acc[i] = vdupq_n_f32(0);
    for (int32_t d = 0; d < head_dim; d++) {
        outer_add(acc, q, k, R, 2 * B);
        QN_UNROLL
        for (int32_t r = 0; r < R; r++) q[r]++;
        QN_UNROLL
        for (int32_t i = 0; i < 2 * B; i++) k[i] += QN_KV_BLOCK;
    }
    float *out = t->s + block % SPAN_BLOCKS * QN_KV_BLOCK;
    QN_UNROLL
    for (int32_t r = 0; r < R; r++)
        QN_UNROLL
        for (int32_t i = 0; i < B * 4; i++) vst1q_f32(out + r * QN_ATTN_SPAN + i * 4, acc[r * B * 4 + i]);
}

/* Blocks [from, to]; 16 sums at least keep the units busy. */
QN_INLINE void scores_rows(const tile *t, int32_t from, int32_t to, const int32_t R, const int32_t B)
{
    int32_t b = from;
    for (; b + B <= to + 1; b += B) scores_block(t, b, R, B);
    for (; b <= to; b++) scores_block(t, b, R, 1);
}

static void scores(const tile *t, int32_t from, int32_t to)
{
    switch (t->n) {
    case 1: scores_rows(t, from, to, 1, 4); break;
    case 2: scores_rows(t, from, to, 2, 2); break;
    case 3: scores_rows(t, from, to, 3, 2); break;
    case 4: scores_rows(t, from, to, 4, 1); break;
    case 5: scores_rows(t, from, to, 5, 1); break;
    default: scores_rows(t, from, to, 6, 1); break;
    }
}

/* o[d] = fma(p[j], v[j][d], o[d]) for positions [from, to], R rows from r0, 8 D columns from column d. */
QN_INLINE void values_tile(const tile *t, int32_t r0, int32_t from, int32_t to, int32_t d, const int32_t R, const int32_t D)
{
    const qn_attn_args *a = t->a;
    float *out = row_out(t, r0) + d;
    float32x4_t o[MAX_SUMS];
    QN_UNROLL
    for (int32_t r = 0; r < R; r++)
        QN_UNROLL
        for (int32_t i = 0; i < 2 * D; i++) o[r * 2 * D + i] = vld1q_f32(out + r * a->o_stride + 4 * i);
    for (int32_t begin = from, end; begin <= to; begin = end) { /* positions of one block */
        const int32_t b = begin / QN_KV_BLOCK, first = begin % QN_KV_BLOCK;
        end = (b + 1) * QN_KV_BLOCK <= to ? (b + 1) * QN_KV_BLOCK : to + 1;
        const uint16_t *v = (const uint16_t *)a->v_blocks[b] + first * a->head_dim_v + d;
        const float *p = t->s + r0 * QN_ATTN_SPAN + begin % QN_ATTN_SPAN;
        for (int32_t j = begin; j < end; j++, v += a->head_dim_v, p++) {
            const uint16_t *x[8];
            const float *w[MAX_TILE];
            QN_UNROLL
            for (int32_t i = 0; i < D; i++) x[i] = v + 8 * i;
            QN_UNROLL
            for (int32_t r = 0; r < R; r++) w[r] = p + r * QN_ATTN_SPAN;
            outer_add(o, w, x, R, D);
        }
    }
    QN_UNROLL
    for (int32_t r = 0; r < R; r++)
        QN_UNROLL
        for (int32_t i = 0; i < 2 * D; i++) vst1q_f32(out + r * a->o_stride + 4 * i, o[r * 2 * D + i]);
}

QN_INLINE void values_rows(const tile *t, int32_t r0, int32_t from, int32_t to, const int32_t R, const int32_t D)
{
    int32_t d = 0;
    for (; d + 8 * D <= t->a->head_dim_v; d += 8 * D) values_tile(t, r0, from, to, d, R, D);
    for (; d < t->a->head_dim_v; d += 8) values_tile(t, r0, from, to, d, R, 1);
}

static void values_one(const tile *t, int32_t r, int32_t from, int32_t to)
{
    if (from <= to) values_rows(t, r, from, to, 1, 8);
}

static void values_all(const tile *t, int32_t from, int32_t to)
{
    switch (t->n) {
    case 1: values_rows(t, 0, from, to, 1, 8); break;
    case 2: values_rows(t, 0, from, to, 2, 4); break;
    case 3: values_rows(t, 0, from, to, 3, 4); break;
    case 4: values_rows(t, 0, from, to, 4, 2); break;
    case 5: values_rows(t, 0, from, to, 5, 2); break;
    default: values_rows(t, 0, from, to, 6, 2); break;
    }
}

/* Positions that every row sees go together; what is left at either end goes row by row, in the order of positions. */
static void values(const tile *t)
{
    int32_t from = 0, to = INT32_MAX;
    for (int32_t r = 0; r < t->n; r++) {
        if (t->lo[r] > from) from = t->lo[r];
        if (t->hi[r] < to) to = t->hi[r];
    }
    if (from > to) {
        for (int32_t r = 0; r < t->n; r++) values_one(t, r, t->lo[r], t->hi[r]);
        return;
    }
    for (int32_t r = 0; r < t->n; r++) values_one(t, r, t->lo[r], from - 1);
    values_all(t, from, to);
    for (int32_t r = 0; r < t->n; r++) values_one(t, r, to + 1, t->hi[r]);
}

static void rescale(tile *t, int32_t r, float max)
{
    const float c = qn_exp1_neon(t->m[r] - max);
    t->m[r] = max;
    t->l[r] *= c;
    if (c == 1.0f) return;
    float *o = row_out(t, r);
    for (int32_t d = 0; d < t->a->head_dim_v; d += 4) vst1q_f32(o + d, vmulq_n_f32(vld1q_f32(o + d), c));
}

/* Ones in the lanes of the 4 positions from `pos` that the row sees. */
QN_INLINE uint32x4_t seen(const tile *t, int32_t r, int32_t pos)
{
    static const int32_t lane[4] = { 0, 1, 2, 3 };
    const int32x4_t at = vaddq_s32(vdupq_n_s32(pos), vld1q_s32(lane));
    return vandq_u32(vcleq_s32(at, vdupq_n_s32(t->hi[r])), vcgeq_s32(at, vdupq_n_s32(t->lo[r])));
}

static void softcap(const tile *t, float *s)
{
    const float32x4_t cap = vdupq_n_f32(t->a->softcap);
    for (int32_t i = 0; i < QN_ATTN_SPAN; i += 4) vst1q_f32(s + i, vmulq_f32(cap, qn_tanh_neon(vdivq_f32(vld1q_f32(s + i), cap))));
}

/* Scores of one row in one span become weights. */
static void weigh(tile *t, int32_t r)
{
    const int32_t base = t->lo[r] / QN_ATTN_SPAN * QN_ATTN_SPAN;
    const int32_t from = (t->lo[r] - base) / QN_KV_BLOCK * QN_KV_BLOCK, to = t->hi[r] - base;
    float *s = t->s + r * QN_ATTN_SPAN;
    const float32x4_t least = vdupq_n_f32(-INFINITY);
    float32x4_t max = vdupq_n_f32(t->m[r]), sum[4] = { vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0) };
    if (t->a->softcap > 0) softcap(t, s);
    for (int32_t i = from; i <= to; i += 4) max = qn_larger(vbslq_f32(seen(t, r, base + i), vld1q_f32(s + i), least), max);
    rescale(t, r, vmaxvq_f32(max));
    for (int32_t i = from; i <= to; i += 4) {
        const float32x4_t p = qn_exp_neon(vsubq_f32(vld1q_f32(s + i), vdupq_n_f32(t->m[r])));
        const float32x4_t kept = vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(p), seen(t, r, base + i)));
        vst1q_f32(s + i, kept);
        sum[i / 4 % 4] = vaddq_f32(sum[i / 4 % 4], kept);
    }
    t->l[r] += qn_tree16_neon(sum);
}

/* Span [base, base + 64): only blocks that some row sees are touched. */
static void span_add(tile *t, int32_t base)
{
    bool need[SPAN_BLOCKS] = { false };
    for (int32_t r = 0; r < t->n; r++) {
        const int32_t first = t->a->first[t->row + r], last = t->a->last[t->row + r];
        t->lo[r] = first > base ? first : base;
        t->hi[r] = last < base + QN_ATTN_SPAN - 1 ? last : base + QN_ATTN_SPAN - 1;
        for (int32_t b = 0; b < SPAN_BLOCKS; b++) {
            const int32_t begin = base + b * QN_KV_BLOCK;
            if (t->lo[r] <= t->hi[r] && t->lo[r] < begin + QN_KV_BLOCK && t->hi[r] >= begin) need[b] = true;
        }
    }
    for (int32_t b = 0, end; b < SPAN_BLOCKS; b = end + 1) {
        end = b;
        if (!need[b]) continue;
        while (end + 1 < SPAN_BLOCKS && need[end + 1]) end++;
        scores(t, base / QN_KV_BLOCK + b, base / QN_KV_BLOCK + end);
    }
    for (int32_t r = 0; r < t->n; r++)
        if (t->lo[r] <= t->hi[r]) weigh(t, r);
    values(t);
}

static void tile_run(tile *t)
{
    const qn_attn_args *a = t->a;
    int32_t first = INT32_MAX, last = 0;
    for (int32_t r = 0; r < t->n; r++) {
        t->m[r] = -INFINITY;
        t->l[r] = 0;
        if (a->first[t->row + r] < first) first = a->first[t->row + r];
        if (a->last[t->row + r] > last) last = a->last[t->row + r];
        for (int32_t d = 0; d < a->head_dim_v; d += 4) vst1q_f32(row_out(t, r) + d, vdupq_n_f32(0));
    }
    for (int32_t base = first / QN_ATTN_SPAN * QN_ATTN_SPAN; base <= last; base += QN_ATTN_SPAN) span_add(t, base);
    for (int32_t r = 0; r < t->n; r++) {
        a->m[t->row + r] = t->m[r];
        a->l[t->row + r] = t->l[r];
    }
}

void qn_attention_neon(const qn_attn_args *a)
{
    tile t = { .a = a, .s = a->scratch };
    for (; t.row < a->n_q; t.row += t.n) {
        t.n = a->n_q - t.row < MAX_TILE ? a->n_q - t.row : MAX_TILE;
        tile_run(&t);
    }
}

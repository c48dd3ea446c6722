/* Attention: the loops of simd/attn_tile.h, 4 lanes at a time. */
#include "simd/neon/neon.h"

#include "simd/attn_tile.h"

enum { MAX_SUMS = 24 /* of 32 registers */ };

/* 8 halves or floats. */
QN_INLINE float32x4x2_t load8(const char *x, const bool f16)
{
    if (!f16) return (float32x4x2_t){ { vld1q_f32((const float *)x), vld1q_f32((const float *)x + 4) } };
    const float16x8_t h = vreinterpretq_f16_u16(vld1q_u16((const uint16_t *)x));
    return (float32x4x2_t){ { vcvt_f32_f16(vget_low_f16(h)), vcvt_high_f32_f16(h) } };
}

/* acc[r][i] = fma(w[r], v[i], acc[r][i]) for R numbers and N times 8 halves or floats. */
QN_INLINE void outer_add(float32x4_t *acc, const float *const *w, const char *const *v, const int32_t R, const int32_t N, const bool f16)
{
    QN_UNROLL
    for (int32_t i = 0; i < N; i++) {
        const float32x4x2_t x = load8(v[i], f16);
        QN_UNROLL
        for (int32_t r = 0; r < R; r++) {
            float32x4_t *at = acc + 2 * (r * N + i);
            at[0] = vfmaq_n_f32(at[0], x.val[0], *w[r]);
            at[1] = vfmaq_n_f32(at[1], x.val[1], *w[r]);
        }
    }
}

/* Scores of R rows from r0 and B neighbouring blocks. */
QN_INLINE void scores_block(const rows *t, int32_t r0, int32_t block, const int32_t R, const int32_t B, const bool f16)
{
    const int32_t head_dim = t->a->head_dim, size = f16 ? 2 : 4;
    const float *q[TILE_ROWS];
    const char *k[8];
    float32x4_t acc[MAX_SUMS];
    QN_UNROLL
    for (int32_t r = 0; r < R; r++) q[r] = row_q(t, r0 + r);
    QN_UNROLL
    for (int32_t i = 0; i < 2 * B; i++) k[i] = (const char *)qn_attn_block(&t->keys, block + i / 2) + i % 2 * 8 * size;
    QN_UNROLL
    for (int32_t i = 0; i < R * B * 4; i++) acc[i] = vdupq_n_f32(0);
    for (int32_t d = 0; d < head_dim; d++) {
        outer_add(acc, q, k, R, 2 * B, f16);
        QN_UNROLL
        for (int32_t r = 0; r < R; r++) q[r]++;
        QN_UNROLL
        for (int32_t i = 0; i < 2 * B; i++) k[i] += QN_KV_BLOCK * size;
    }
    float *out = row_s(t, r0) + block % QN_SPAN_BLOCKS * QN_KV_BLOCK;
    QN_UNROLL
    for (int32_t r = 0; r < R; r++)
        QN_UNROLL
        for (int32_t i = 0; i < B * 4; i++) vst1q_f32(out + r * QN_ATTN_SPAN + i * 4, acc[r * B * 4 + i]);
}

/* Blocks [from, to]; 16 sums at least keep the units busy. */
QN_INLINE void scores_rows(const rows *t, int32_t r0, int32_t from, int32_t to, const int32_t R, const int32_t B, const bool f16)
{
    int32_t b = from;
    for (; b + B <= to + 1; b += B) scores_block(t, r0, b, R, B, f16);
    for (; b <= to; b++) scores_block(t, r0, b, R, 1, f16);
}

QN_INLINE void scores_as(const rows *t, int32_t r, int32_t n, int32_t from, int32_t to, const bool f16)
{
    switch (n) {
    case 1: scores_rows(t, r, from, to, 1, 4, f16); break;
    case 2: scores_rows(t, r, from, to, 2, 2, f16); break;
    case 3: scores_rows(t, r, from, to, 3, 2, f16); break;
    case 4: scores_rows(t, r, from, to, 4, 1, f16); break;
    case 5: scores_rows(t, r, from, to, 5, 1, f16); break;
    default: scores_rows(t, r, from, to, 6, 1, f16); break;
    }
}

static void level_scores(const rows *t, int32_t r, int32_t n, int32_t from, int32_t to)
{
    if (t->keys.f16) scores_as(t, r, n, from, to, true);
    else scores_as(t, r, n, from, to, false);
}

/* o[d] = fma(p[j], v[j][d], o[d]) for positions [from, to], R rows from r0, 8 D columns from column d. */
QN_INLINE void values_tile(const rows *t, int32_t r0, int32_t from, int32_t to, int32_t d, const int32_t R, const int32_t D, const bool f16)
{
    const qn_attn_args *a = t->a;
    const int32_t size = f16 ? 2 : 4, step = a->head_dim_v * size;
    float *out = row_out(t, r0) + d;
    float32x4_t o[MAX_SUMS];
    QN_UNROLL
    for (int32_t r = 0; r < R; r++)
        QN_UNROLL
        for (int32_t i = 0; i < 2 * D; i++) o[r * 2 * D + i] = vld1q_f32(out + r * a->o_stride + 4 * i);
    for (int32_t begin = from, end; begin <= to; begin = end) { /* positions of one block */
        const int32_t b = begin / QN_KV_BLOCK, first = begin % QN_KV_BLOCK;
        end = (b + 1) * QN_KV_BLOCK <= to ? (b + 1) * QN_KV_BLOCK : to + 1;
        const char *v = (const char *)qn_attn_block(&t->values, b) + first * step + d * size;
        const float *p = row_s(t, r0) + begin % QN_ATTN_SPAN;
        for (int32_t j = begin; j < end; j++, v += step, p++) {
            const char *x[8];
            const float *w[TILE_ROWS];
            QN_UNROLL
            for (int32_t i = 0; i < D; i++) x[i] = v + 8 * i * size;
            QN_UNROLL
            for (int32_t r = 0; r < R; r++) w[r] = p + r * QN_ATTN_SPAN;
            outer_add(o, w, x, R, D, f16);
        }
    }
    QN_UNROLL
    for (int32_t r = 0; r < R; r++)
        QN_UNROLL
        for (int32_t i = 0; i < 2 * D; i++) vst1q_f32(out + r * a->o_stride + 4 * i, o[r * 2 * D + i]);
}

QN_INLINE void values_rows(const rows *t, int32_t r0, int32_t from, int32_t to, const int32_t R, const int32_t D, const bool f16)
{
    int32_t d = 0;
    for (; d + 8 * D <= t->a->head_dim_v; d += 8 * D) values_tile(t, r0, from, to, d, R, D, f16);
    for (; d < t->a->head_dim_v; d += 8) values_tile(t, r0, from, to, d, R, 1, f16);
}

QN_INLINE void values_as(const rows *t, int32_t r, int32_t n, int32_t from, int32_t to, const bool f16)
{
    switch (n) {
    case 1: values_rows(t, r, from, to, 1, 8, f16); break;
    case 2: values_rows(t, r, from, to, 2, 4, f16); break;
    case 3: values_rows(t, r, from, to, 3, 4, f16); break;
    case 4: values_rows(t, r, from, to, 4, 2, f16); break;
    case 5: values_rows(t, r, from, to, 5, 2, f16); break;
    default: values_rows(t, r, from, to, 6, 2, f16); break;
    }
}

static void level_values(const rows *t, int32_t r, int32_t n, int32_t from, int32_t to)
{
    if (t->values.f16) values_as(t, r, n, from, to, true);
    else values_as(t, r, n, from, to, false);
}

static void rescale(const rows *t, int32_t r, float max)
{
    float *m = t->a->m + t->row + r;
    const float c = qn_exp1_neon(*m - max);
    *m = max;
    t->a->l[t->row + r] *= c;
    if (c == 1.0f) return;
    float *o = row_out(t, r);
    for (int32_t d = 0; d < t->a->head_dim_v; d += 4) vst1q_f32(o + d, vmulq_n_f32(vld1q_f32(o + d), c));
}

/* Ones in the lanes of the 4 positions from `pos` that the row sees. */
QN_INLINE uint32x4_t seen(const rows *t, int32_t r, int32_t pos)
{
    static const int32_t lane[4] = { 0, 1, 2, 3 };
    const int32x4_t at = vaddq_s32(vdupq_n_s32(pos), vld1q_s32(lane));
    return vandq_u32(vcleq_s32(at, vdupq_n_s32(t->hi[r])), vcgeq_s32(at, vdupq_n_s32(t->lo[r])));
}

static void softcap(const rows *t, float *s)
{
    const float32x4_t cap = vdupq_n_f32(t->a->softcap);
    for (int32_t i = 0; i < QN_ATTN_SPAN; i += 4) vst1q_f32(s + i, vmulq_f32(cap, qn_tanh_neon(vdivq_f32(vld1q_f32(s + i), cap))));
}

/* Scores of the span from `base` are lowered by the distance. */
static void lower(const rows *t, int32_t r, int32_t base, float *s)
{
    static const int32_t lane[4] = { 0, 1, 2, 3 };
    const int32_t row = t->row + r;
    for (int32_t i = 0; i < QN_ATTN_SPAN; i += 4) {
        const int32x4_t away = vabsq_s32(vaddq_s32(vdupq_n_s32(base + i - t->a->at[row]), vld1q_s32(lane)));
        vst1q_f32(s + i, vfmsq_n_f32(vld1q_f32(s + i), vcvtq_f32_s32(away), t->a->slope[row]));
    }
}

static void level_weigh(const rows *t, int32_t r)
{
    const int32_t base = t->lo[r] / QN_ATTN_SPAN * QN_ATTN_SPAN;
    const int32_t from = (t->lo[r] - base) / QN_KV_BLOCK * QN_KV_BLOCK, to = t->hi[r] - base;
    float *s = row_s(t, r);
    const float32x4_t least = vdupq_n_f32(-INFINITY);
    float32x4_t max = vdupq_n_f32(t->a->m[t->row + r]), sum[4] = { vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0) };
    if (t->a->softcap > 0) softcap(t, s);
    if (t->a->slope) lower(t, r, base, s);
    for (int32_t i = from; i <= to; i += 4) max = qn_larger(vbslq_f32(seen(t, r, base + i), vld1q_f32(s + i), least), max);
    const float most = vmaxvq_f32(max);
    rescale(t, r, most);
    for (int32_t i = from; i <= to; i += 4) {
        const float32x4_t p = qn_exp_neon(vsubq_f32(vld1q_f32(s + i), vdupq_n_f32(most)));
        const float32x4_t kept = vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(p), seen(t, r, base + i)));
        vst1q_f32(s + i, kept);
        sum[i / 4 % 4] = vaddq_f32(sum[i / 4 % 4], kept);
    }
    t->a->l[t->row + r] += qn_tree16_neon(sum);
}

void qn_attention_neon(const qn_attn_args *a)
{
    attend(a);
}

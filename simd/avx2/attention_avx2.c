/**
 * Attention: up to 6 query rows share each load of K and V. Scores have positions in the lanes (K blocks are [head_dim][16]), values have
 * head_dim in the lanes. What one row sees is never mixed with what another sees: values a row is not to see are left out, not weighted by zero.
 */
#include "simd/avx2/avx2.h"

#include <math.h>

enum { MAX_TILE = 6, SPAN_BLOCKS = QN_ATTN_SPAN / QN_KV_BLOCK };

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

/* acc[r][i] = fma(w[r], v[i], acc[r][i]) for R numbers and N times 8 halves; the shorter side stays in registers: 12 sums leave 4 of 16. */
QN_INLINE void outer_add(__m256 *acc, const float *const *w, const uint16_t *const *v, const int32_t R, const int32_t N)
{
    __m256 kept[6];
    QN_UNROLL
    for (int32_t i = 0; i < (R < N ? R : N); i++) kept[i] = R < N ? _mm256_broadcast_ss(w[i]) : qn_load8_f16(v[i]);
    QN_UNROLL
    for (int32_t j = 0; j < (R < N ? N : R); j++) {
        const __m256 x = R < N ? qn_load8_f16(v[j]) : _mm256_broadcast_ss(w[j]);
        QN_UNROLL
        for (int32_t i = 0; i < (R < N ? R : N); i++) {
            const int32_t at = R < N ? i * N + j : j * N + i;
            acc[at] = _mm256_fmadd_ps(kept[i], x, acc[at]);
            QN_IN_ORDER(acc[at]);
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
    __m256 acc[12];
    QN_UNROLL
    for (int32_t r = 0; r < R; r++) q[r] = a->q + (t->row + r) * a->q_stride;
    QN_UNROLL
    for (int32_t i = 0; i < 2 * B; i++) k[i] = (const uint16_t *)a->k_blocks[block + i / 2] + i % 2 * 8;
    QN_UNROLL
    for (int32_t i = 0; i < R * B * 2; i++) acc[i] = _mm256_setzero_ps();
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
        for (int32_t i = 0; i < B * 2; i++) _mm256_storeu_ps(out + r * QN_ATTN_SPAN + i * 8, acc[r * B * 2 + i]);
}

/* Blocks [from, to]; R * B chains of two registers keep the units busy. */
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

/* o[d] = fma(p[j], v[j][d], o[d]) for positions [from, to], R rows from r0, D registers from column d. */
QN_INLINE void values_tile(const tile *t, int32_t r0, int32_t from, int32_t to, int32_t d, const int32_t R, const int32_t D)
{
    const qn_attn_args *a = t->a;
    float *out = row_out(t, r0) + d;
    __m256 o[12];
    QN_UNROLL
    for (int32_t r = 0; r < R; r++)
        QN_UNROLL
        for (int32_t i = 0; i < D; i++) o[r * D + i] = _mm256_loadu_ps(out + r * a->o_stride + 8 * i);
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
        for (int32_t i = 0; i < D; i++) _mm256_storeu_ps(out + r * a->o_stride + 8 * i, o[r * D + i]);
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
    const float c = qn_exp1_avx2(t->m[r] - max);
    t->m[r] = max;
    t->l[r] *= c;
    if (c == 1.0f) return;
    float *o = row_out(t, r);
    for (int32_t d = 0; d < t->a->head_dim_v; d += 8)
        _mm256_storeu_ps(o + d, _mm256_mul_ps(_mm256_loadu_ps(o + d), _mm256_set1_ps(c)));
}

/* Ones in the lanes of the 8 positions from `pos` that the row sees. */
QN_INLINE __m256 seen(const tile *t, int32_t r, int32_t pos)
{
    const __m256i at = _mm256_add_epi32(_mm256_set1_epi32(pos), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    return _mm256_castsi256_ps(_mm256_andnot_si256(_mm256_cmpgt_epi32(at, _mm256_set1_epi32(t->hi[r])),
                                                   _mm256_cmpgt_epi32(at, _mm256_set1_epi32(t->lo[r] - 1))));
}

static void softcap(const tile *t, float *s)
{
    const __m256 cap = _mm256_set1_ps(t->a->softcap);
    for (int32_t i = 0; i < QN_ATTN_SPAN; i += 8)
        _mm256_storeu_ps(s + i, _mm256_mul_ps(cap, qn_tanh_avx2(_mm256_div_ps(_mm256_loadu_ps(s + i), cap))));
}

/* Scores of one row in one span become weights. */
static void weigh(tile *t, int32_t r)
{
    const int32_t base = t->lo[r] / QN_ATTN_SPAN * QN_ATTN_SPAN;
    const int32_t from = (t->lo[r] - base) / QN_KV_BLOCK * QN_KV_BLOCK, to = t->hi[r] - base;
    float *s = t->s + r * QN_ATTN_SPAN;
    const __m256 least = _mm256_set1_ps(-INFINITY);
    __m256 max = _mm256_set1_ps(t->m[r]), sum[2] = { _mm256_setzero_ps(), _mm256_setzero_ps() };
    if (t->a->softcap > 0) softcap(t, s);
    for (int32_t i = from; i <= to; i += 8)
        max = _mm256_max_ps(_mm256_blendv_ps(least, _mm256_loadu_ps(s + i), seen(t, r, base + i)), max);
    rescale(t, r, qn_max8_avx2(max));
    for (int32_t i = from; i <= to; i += 8) {
        const __m256 p = qn_exp_avx2(_mm256_sub_ps(_mm256_loadu_ps(s + i), _mm256_set1_ps(t->m[r])));
        const __m256 kept = _mm256_and_ps(p, seen(t, r, base + i));
        _mm256_storeu_ps(s + i, kept);
        sum[i / 8 % 2] = _mm256_add_ps(sum[i / 8 % 2], kept);
    }
    t->l[r] += qn_tree16_avx2(sum[0], sum[1]);
}

/* Span [base, base + 64): only blocks that some row sees are touched. */
static void span_add(tile *t, int32_t base)
{
    bool need[SPAN_BLOCKS] = { false };
    for (int32_t r = 0; r < t->n; r++) {
        const int32_t first = t->a->first[t->row + r], last = t->a->last[t->row + r];
        t->lo[r] = first > base ? first : base;
        t->hi[r] = last < base + QN_ATTN_SPAN - 1 ? last : base + QN_ATTN_SPAN - 1;
        for (int32_t b = 0; b < SPAN_BLOCKS; b++)
            if (t->lo[r] <= t->hi[r] && t->lo[r] <= base + b * QN_KV_BLOCK + QN_KV_BLOCK - 1 && t->hi[r] >= base + b * QN_KV_BLOCK) need[b] = true;
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
        for (int32_t d = 0; d < a->head_dim_v; d += 8) _mm256_storeu_ps(row_out(t, r) + d, _mm256_setzero_ps());
    }
    for (int32_t base = first / QN_ATTN_SPAN * QN_ATTN_SPAN; base <= last; base += QN_ATTN_SPAN) span_add(t, base);
    for (int32_t r = 0; r < t->n; r++) {
        a->m[t->row + r] = t->m[r];
        a->l[t->row + r] = t->l[r];
    }
}

void qn_attention_avx2(const qn_attn_args *a)
{
    tile t = { .a = a, .s = a->scratch };
    for (; t.row < a->n_q; t.row += t.n) {
        t.n = a->n_q - t.row < MAX_TILE ? a->n_q - t.row : MAX_TILE;
        tile_run(&t);
    }
}

/**
 * Attention: up to 12 query rows share each load of K and V, which stay in the L1 cache for the up to 32 rows of a call. Scores have the 16
 * positions of a block in the lanes, values 16 columns. What one row sees is never mixed with what another sees: values a row is not to see are left
 * out, not weighted by zero.
 */
#include "simd/attn_span.h"
#include "simd/avx512/avx512.h"

#include <math.h>

enum {
    MAX_ROWS = 32,      /* of a call, and of all spans that are worked on together */
    TILE_ROWS = 12,
    MAX_SPANS = 4,      /* few rows take several spans at once, so that the chains of one span's exponentials hide in the others' */
    FEW_ROWS = MAX_ROWS / MAX_SPANS
};

/* Rows [row, row + n) of a call in up to MAX_SPANS spans. Row r of span k is line k * n + r of the arrays. Sums live in the call's m, l and o. */
typedef struct stretch {
    const qn_attn_args *a;
    int32_t row, n;
    int32_t base, n_spans;                /* first position of the first span           */
    int32_t last_block;                   /* that a row of the call sees                */
    int32_t lo[MAX_ROWS], hi[MAX_ROWS];   /* what a line sees; empty: lo > hi           */
    float *s;                             /* [MAX_ROWS][QN_ATTN_SPAN] scores, then weights */
    float *wide;                          /* [QN_ATTN_SPAN][dim] of keys, then of values   */
    qn_attn_side keys, values;
} stretch;

QN_INLINE float *row_o(const stretch *st, int32_t r)
{
    return st->a->o + (st->row + r) * st->a->o_stride;
}

QN_INLINE int32_t span_base(const stretch *st, int32_t k)
{
    return st->base + k * QN_ATTN_SPAN;
}

/* Scores of line k * n + r. */
QN_INLINE float *line_s(const stretch *st, int32_t k, int32_t r)
{
    return st->s + (k * st->n + r) * QN_ATTN_SPAN;
}

/* 16 halves or floats, of which those in `mask` are there. */
QN_INLINE __m512 load16(const char *x, __mmask16 mask, const bool f16)
{
    if (!f16) return mask == 0xffff ? _mm512_loadu_ps(x) : _mm512_maskz_loadu_ps(mask, x);
    return mask == 0xffff ? qn_load16_f16((const uint16_t *)x) : _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, x));
}

/* acc[r][i] = fma(w[r], x[i], acc[r][i]) for R numbers and N times 16 halves or floats. */
QN_INLINE void outer_add(__m512 *acc, const qn_rows14 *w, const char *const *x, __mmask16 mask, const int32_t R, const int32_t N, const bool f16)
{
    __m512 v[4];
    QN_UNROLL
    for (int32_t i = 0; i < N; i++) v[i] = load16(x[i], mask, f16);
    QN_UNROLL
    for (int32_t r = 0; r < R; r++) {
        const __m512 y = _mm512_set1_ps(*(const float *)qn_rows14_at(w, r));
        QN_UNROLL
        for (int32_t i = 0; i < N; i++) {
            acc[r * N + i] = _mm512_fmadd_ps(y, v[i], acc[r * N + i]);
            QN_IN_ORDER16(acc[r * N + i]);
        }
    }
}

/* The line `at` bytes into the keys that come next and into the values of the blocks at hand: a decode step reads keys and values once, from
 * memory, in pieces of a few KiB that the hardware's prefetch does not join. */
QN_INLINE void prefetch_ahead(const stretch *st, int32_t block, int32_t at, const int32_t N)
{
    QN_UNROLL
    for (int32_t i = 0; i < N; i++) {
        const int32_t next = block + N + i <= st->last_block ? block + N + i : st->last_block;
        _mm_prefetch((const char *)st->a->k_blocks[next] + at, _MM_HINT_T0);
        _mm_prefetch((const char *)st->a->v_blocks[block + i] + at, _MM_HINT_T0);
    }
}

/* Scores of R rows from r0 and N neighbouring blocks of span k. */
QN_INLINE void scores_tile(const stretch *st, int32_t k, int32_t r0, int32_t block, const int32_t R, const int32_t N, const bool f16)
{
    const qn_attn_args *a = st->a;
    const int32_t line = QN_KV_BLOCK * (f16 ? 2 : 4); /* bytes */
    qn_rows14 q = qn_rows14_open(a->q + (st->row + r0) * a->q_stride, a->q_stride * 4);
    const char *key[4];
    __m512 acc[24];
    QN_UNROLL
    for (int32_t i = 0; i < N; i++) key[i] = qn_attn_block(&st->keys, block + i);
    QN_UNROLL
    for (int32_t r = 0; r < R; r++) /* two loops: QN_UNROLL goes to 16 turns */
        QN_UNROLL
        for (int32_t i = 0; i < N; i++) acc[r * N + i] = _mm512_setzero_ps();
    for (int32_t d = 0; d < a->head_dim; d++) {
        if (R <= FEW_ROWS && d * line % 64 == 0 && !st->keys.load) prefetch_ahead(st, block, d * line, N);
        outer_add(acc, &q, key, 0xffff, R, N, f16);
        qn_rows14_step(&q, 4);
        QN_UNROLL
        for (int32_t i = 0; i < N; i++) key[i] += line;
    }
    float *out = line_s(st, k, r0) + block % QN_SPAN_BLOCKS * QN_KV_BLOCK;
    QN_UNROLL
    for (int32_t r = 0; r < R; r++)
        QN_UNROLL
        for (int32_t i = 0; i < N; i++) _mm512_storeu_ps(out + r * QN_ATTN_SPAN + i * QN_KV_BLOCK, acc[r * N + i]);
}

/* Blocks [from, to]. */
QN_INLINE void scores_rows(const stretch *st, int32_t k, int32_t r0, int32_t from, int32_t to, const int32_t R, const int32_t N,
                           const bool f16)
{
    int32_t b = from;
    for (; b + N <= to + 1; b += N) scores_tile(st, k, r0, b, R, N, f16);
    for (; b <= to; b++) scores_tile(st, k, r0, b, R, 1, f16);
}

/* o[d] = fma(p[j], v[j][d], o[d]) for positions [from, to] of span k, R rows from r0, N registers from column d. */
QN_INLINE void values_tile(const stretch *st, int32_t k, int32_t r0, int32_t from, int32_t to, int32_t d, __mmask16 mask, const int32_t R,
                           const int32_t N, const bool f16)
{
    const qn_attn_args *a = st->a;
    const int32_t size = f16 ? 2 : 4;
    float *o = row_o(st, r0) + d;
    __m512 acc[24];
    QN_UNROLL
    for (int32_t r = 0; r < R; r++)
        QN_UNROLL
        for (int32_t i = 0; i < N; i++) acc[r * N + i] = _mm512_maskz_loadu_ps(mask, o + r * a->o_stride + 16 * i);
    qn_rows14 p = qn_rows14_open(line_s(st, k, r0) + (from - span_base(st, k)), QN_ATTN_SPAN * 4);
    for (int32_t begin = from, end; begin <= to; begin = end) { /* positions of one block */
        const int32_t b = begin / QN_KV_BLOCK;
        const char *v[4];
        end = (b + 1) * QN_KV_BLOCK <= to ? (b + 1) * QN_KV_BLOCK : to + 1;
        QN_UNROLL
        for (int32_t i = 0; i < N; i++) v[i] = (const char *)qn_attn_block(&st->values, b) + (begin % QN_KV_BLOCK * a->head_dim_v + d + 16 * i) * size;
        for (int32_t j = begin; j < end; j++) {
            outer_add(acc, &p, v, mask, R, N, f16);
            qn_rows14_step(&p, 4);
            QN_UNROLL
            for (int32_t i = 0; i < N; i++) v[i] += a->head_dim_v * size;
        }
    }
    QN_UNROLL
    for (int32_t r = 0; r < R; r++)
        QN_UNROLL
        for (int32_t i = 0; i < N; i++) {
            if (mask == 0xffff) _mm512_storeu_ps(o + r * a->o_stride + 16 * i, acc[r * N + i]);
            else _mm512_mask_storeu_ps(o + r * a->o_stride + 16 * i, mask, acc[r * N + i]);
        }
}

QN_INLINE void values_rows(const stretch *st, int32_t k, int32_t r0, int32_t from, int32_t to, const int32_t R, const int32_t N,
                           const bool f16)
{
    const int32_t dim = st->a->head_dim_v;
    int32_t d = 0;
    for (; d + 16 * N <= dim; d += 16 * N) values_tile(st, k, r0, from, to, d, 0xffff, R, N, f16);
    for (; d + 16 <= dim; d += 16) values_tile(st, k, r0, from, to, d, 0xffff, R, 1, f16);
    if (d < dim) values_tile(st, k, r0, from, to, d, qn_mask16(dim - d), R, 1, f16);
}

typedef void step(const stretch *st, int32_t k, int32_t r0, int32_t from, int32_t to, const int32_t R, const int32_t N, const bool f16);

/* R rows times N registers: at most 24 sums, of 32 registers. */
QN_INLINE void dispatch(const stretch *st, int32_t k, int32_t r0, int32_t n, int32_t from, int32_t to, step run, const bool f16)
{
    switch (n) {
    case 1: run(st, k, r0, from, to, 1, 4, f16); break;
    case 2: run(st, k, r0, from, to, 2, 4, f16); break;
    case 3: run(st, k, r0, from, to, 3, 4, f16); break;
    case 4: run(st, k, r0, from, to, 4, 4, f16); break;
    case 5: run(st, k, r0, from, to, 5, 4, f16); break;
    case 6: run(st, k, r0, from, to, 6, 4, f16); break;
    case 7: run(st, k, r0, from, to, 7, 2, f16); break;
    case 8: run(st, k, r0, from, to, 8, 2, f16); break;
    case 9: run(st, k, r0, from, to, 9, 2, f16); break;
    case 10: run(st, k, r0, from, to, 10, 2, f16); break;
    case 11: run(st, k, r0, from, to, 11, 2, f16); break;
    default: run(st, k, r0, from, to, 12, 2, f16); break;
    }
}

static void scores(const stretch *st, int32_t k, int32_t r0, int32_t n, int32_t from, int32_t to)
{
    if (st->keys.f16) dispatch(st, k, r0, n, from, to, scores_rows, true);
    else dispatch(st, k, r0, n, from, to, scores_rows, false);
}

static void values(const stretch *st, int32_t k, int32_t r0, int32_t n, int32_t from, int32_t to)
{
    if (from > to) return;
    if (st->values.f16) dispatch(st, k, r0, n, from, to, values_rows, true);
    else dispatch(st, k, r0, n, from, to, values_rows, false);
}

static uint32_t seen_blocks(const stretch *st, int32_t k, int32_t r0, int32_t n)
{
    return qn_attn_seen_blocks(st->lo + k * st->n + r0, st->hi + k * st->n + r0, n, span_base(st, k));
}

/* Scores of rows [r0, r0 + n) in span k: only blocks that some row sees are touched. */
static void score_tile(const stretch *st, int32_t k, int32_t r0, int32_t n)
{
    const uint32_t seen = seen_blocks(st, k, r0, n);
    const int32_t b0 = span_base(st, k) / QN_KV_BLOCK;
    for (int32_t b = 0, end; qn_attn_next_run(seen, &b, &end); b = end + 1) scores(st, k, r0, n, b0 + b, b0 + end);
}

/* Positions that every row sees go together; what is left at either end goes row by row, in the order of positions. */
static void value_tile(const stretch *st, int32_t k, int32_t r0, int32_t n)
{
    const int32_t *lo = st->lo + k * st->n, *hi = st->hi + k * st->n;
    int32_t from = 0, to = INT32_MAX;
    for (int32_t r = r0; r < r0 + n; r++) {
        if (lo[r] > from) from = lo[r];
        if (hi[r] < to) to = hi[r];
    }
    if (from > to) {
        for (int32_t r = r0; r < r0 + n; r++) values(st, k, r, 1, lo[r], hi[r]);
        return;
    }
    for (int32_t r = r0; r < r0 + n; r++) values(st, k, r, 1, lo[r], from - 1);
    values(st, k, r0, n, from, to);
    for (int32_t r = r0; r < r0 + n; r++) values(st, k, r, 1, to + 1, hi[r]);
}

/* What a line sees, as blocks of its span, and lanes of them. */
typedef struct view {
    int32_t first, last;                  /* blocks; last < first: nothing */
    int32_t lo, hi;                       /* positions from the span's first */
} view;

QN_INLINE view view_of(const stretch *st, int32_t k, int32_t r)
{
    const int32_t lo = st->lo[k * st->n + r] - span_base(st, k), hi = st->hi[k * st->n + r] - span_base(st, k);
    if (lo > hi) return (view){ 0, -1, 0, -1 };
    return (view){ lo / QN_KV_BLOCK, hi / QN_KV_BLOCK, lo, hi };
}

QN_INLINE __mmask16 seen(const view *w, int32_t b)
{
    return (__mmask16)(qn_mask16(w->hi + 1 - b * QN_KV_BLOCK) & ~qn_mask16(w->lo - b * QN_KV_BLOCK));
}

/* A block's scores as the kernel's contract has them, of their products: capped, then lowered by the distance. `from`: the block's first position
 * as row r sees it. */
QN_INLINE __m512 bend(const qn_attn_args *a, int32_t r, int32_t from, __m512 v)
{
    const __m512 cap = _mm512_set1_ps(a->softcap);
    if (a->softcap > 0) v = _mm512_mul_ps(cap, qn_tanh_avx512(_mm512_div_ps(v, cap)));
    if (!a->slope) return v;
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i away = _mm512_abs_epi32(_mm512_add_epi32(_mm512_set1_epi32(from), lane));
    return _mm512_fnmadd_ps(_mm512_set1_ps(a->slope[r]), _mm512_cvtepi32_ps(away), v);
}

/* The largest score of a line, -Inf at least: a NaN is never the larger one. Scores are bent on the way. */
static float line_max(const stretch *st, int32_t k, int32_t r)
{
    const qn_attn_args *a = st->a;
    const int32_t row = st->row + r, from = a->slope ? span_base(st, k) - a->at[row] : 0;
    const view w = view_of(st, k, r);
    float *s = line_s(st, k, r);
    __m512 max = _mm512_set1_ps(-INFINITY);
    for (int32_t b = w.first; b <= w.last; b++) {
        __m512 v = _mm512_loadu_ps(s + b * QN_KV_BLOCK);
        if (a->softcap > 0 || a->slope) {
            v = bend(a, row, from + b * QN_KV_BLOCK, v);
            _mm512_storeu_ps(s + b * QN_KV_BLOCK, v);
        }
        max = _mm512_mask_max_ps(max, seen(&w, b), v, max);
    }
    return qn_max16_avx512(max);
}

/* Scores of a line become weights. @return their sum */
static float weigh(const stretch *st, int32_t k, int32_t r, float max)
{
    const view w = view_of(st, k, r);
    float *s = line_s(st, k, r);
    __m512 sum = _mm512_setzero_ps();
    for (int32_t b = w.first; b <= w.last; b++) {
        const __m512 p = qn_exp_avx512(_mm512_sub_ps(_mm512_loadu_ps(s + b * QN_KV_BLOCK), _mm512_set1_ps(max)));
        _mm512_storeu_ps(s + b * QN_KV_BLOCK, p);
        sum = _mm512_mask_add_ps(sum, seen(&w, b), sum, p);
    }
    return qn_tree16_avx512(sum);
}

static void shrink(float *o, int32_t n, float c)
{
    const __m512 f = _mm512_set1_ps(c);
    for (int32_t d = 0; d < n; d += 16) qn_store16(o + d, n - d, _mm512_mul_ps(qn_load16(o + d, n - d), f));
}

/* All scores of the stretch become weights, and its sums join the rows'. @param c [MAX_ROWS] by how much a row's values shrink before a line's
 * are added; computed 16 lines at a time */
static void soften(const stretch *st, float *c)
{
    float *m = st->a->m + st->row, *l = st->a->l + st->row, max[MAX_ROWS], fall[MAX_ROWS];
    for (int32_t k = 0, i = 0; k < st->n_spans; k++)
        for (int32_t r = 0; r < st->n; r++, i++) {
            const float own = line_max(st, k, r), before = m[r];
            if (own > before) m[r] = own;
            max[i] = m[r];
            fall[i] = before - m[r];
        }
    for (int32_t i = 0; i < MAX_ROWS; i += 16) _mm512_storeu_ps(c + i, qn_exp_avx512(_mm512_loadu_ps(fall + i)));
    for (int32_t k = 0, i = 0; k < st->n_spans; k++)
        for (int32_t r = 0; r < st->n; r++, i++)
            if (st->lo[i] <= st->hi[i]) l[r] = l[r] * c[i] + weigh(st, k, r, max[i]);
}

static void stretch_add(stretch *st)
{
    const qn_attn_args *a = st->a;
    const int32_t n_tiles = (st->n + TILE_ROWS - 1) / TILE_ROWS;
    float c[MAX_ROWS];
    for (int32_t i = 0; i < st->n_spans * st->n; i++) {
        const int32_t first = a->first[st->row + i % st->n], last = a->last[st->row + i % st->n], base = span_base(st, i / st->n);
        st->lo[i] = first > base ? first : base;
        st->hi[i] = last < base + QN_ATTN_SPAN - 1 ? last : base + QN_ATTN_SPAN - 1;
    }
    for (int32_t k = 0; k < st->n_spans; k++) {
        qn_attn_open(&st->keys, span_base(st, k), seen_blocks(st, k, 0, st->n), st->wide, &st->values, st->n <= FEW_ROWS ? st->last_block : -1);
        for (int32_t i = 0; i < n_tiles; i++) score_tile(st, k, st->n * i / n_tiles, st->n * (i + 1) / n_tiles - st->n * i / n_tiles);
    }
    soften(st, c);
    for (int32_t k = 0; k < st->n_spans; k++) {
        qn_attn_open(&st->values, span_base(st, k), seen_blocks(st, k, 0, st->n), st->wide, NULL, -1);
        for (int32_t r = 0; r < st->n; r++)
            if (st->lo[k * st->n + r] <= st->hi[k * st->n + r] && c[k * st->n + r] != 1.0f) shrink(row_o(st, r), a->head_dim_v, c[k * st->n + r]);
        for (int32_t i = 0; i < n_tiles; i++) value_tile(st, k, st->n * i / n_tiles, st->n * (i + 1) / n_tiles - st->n * i / n_tiles);
    }
}

static void rows_run(stretch *st)
{
    const qn_attn_args *a = st->a;
    const int32_t most = st->n <= FEW_ROWS ? MAX_SPANS : 1;
    int32_t first = INT32_MAX, last = 0;
    for (int32_t r = st->row; r < st->row + st->n; r++) {
        a->m[r] = -INFINITY;
        a->l[r] = 0;
        if (a->first[r] < first) first = a->first[r];
        if (a->last[r] > last) last = a->last[r];
        for (int32_t d = 0; d < a->head_dim_v; d += 16) qn_store16(a->o + r * a->o_stride + d, a->head_dim_v - d, _mm512_setzero_ps());
    }
    st->last_block = last / QN_KV_BLOCK;
    for (st->base = first / QN_ATTN_SPAN * QN_ATTN_SPAN; st->base <= last; st->base += st->n_spans * QN_ATTN_SPAN) {
        const int32_t left = (last - st->base) / QN_ATTN_SPAN + 1;
        st->n_spans = left < most ? left : most;
        stretch_add(st);
    }
}

void qn_attention_avx512(const qn_attn_args *a)
{
    stretch st = { .a = a, .s = a->scratch, .wide = a->scratch + MAX_ROWS * QN_ATTN_SPAN, .keys = qn_attn_keys(a), .values = qn_attn_values(a) };
    for (; st.row < a->n_q; st.row += st.n) {
        st.n = a->n_q - st.row < MAX_ROWS ? a->n_q - st.row : MAX_ROWS;
        rows_run(&st);
    }
}

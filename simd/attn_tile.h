/**
 * Attention on levels whose registers hold the sums of 6 rows: which rows, spans, blocks and positions go together. The level gives the loops over
 * them. Up to 6 query rows share each load of K and V. Scores have positions in the lanes, values have head_dim in the lanes. What one row sees is
 * never mixed with what another sees: values a row is not to see are left out, not weighted by zero.
 */
#ifndef QN_SIMD_ATTN_TILE_H
#define QN_SIMD_ATTN_TILE_H

#include "simd/attn_span.h"

#include <math.h>
#include <string.h>

enum { TILE_ROWS = 6, MAX_ROWS = 36 };

/* Rows of a call that go through the spans together: 6, or, where a span is widened first, as many as share that. */
typedef struct rows {
    const qn_attn_args *a;
    int32_t row, n;                         /* rows [row, row + n) of the call             */
    int32_t last_block;                     /* that a row sees                             */
    int32_t lo[MAX_ROWS], hi[MAX_ROWS];     /* positions of this span; empty: lo > hi      */
    float *s;                               /* [MAX_ROWS][QN_ATTN_SPAN] scores, then weights */
    float *wide;                            /* [QN_ATTN_SPAN][dim] of keys, then of values */
    qn_attn_side keys, values;
} rows;

static inline const float *row_q(const rows *t, int32_t r)
{
    return t->a->q + (t->row + r) * t->a->q_stride;
}

static inline float *row_out(const rows *t, int32_t r)
{
    return t->a->o + (t->row + r) * t->a->o_stride;
}

static inline float *row_s(const rows *t, int32_t r)
{
    return t->s + r * QN_ATTN_SPAN;
}

/* ---- what the level gives ---- */

/* Scores of rows [r, r + n), at most 6, against neighbouring blocks [from, to]. */
static void level_scores(const rows *t, int32_t r, int32_t n, int32_t from, int32_t to);
/* o[d] = fma(p[j], v[j][d], o[d]) for positions [from, to] and rows [r, r + n), at most 6. */
static void level_values(const rows *t, int32_t r, int32_t n, int32_t from, int32_t to);
/* Scores of one row in one span become weights; its sums shrink where they must. */
static void level_weigh(const rows *t, int32_t r);

/* ---- the rest ---- */

/* Positions that every row sees go together; what is left at either end goes row by row, in the order of positions. */
static void values_tile_add(const rows *t, int32_t r0, int32_t n)
{
    const int32_t *lo = t->lo, *hi = t->hi, end = r0 + n;
    int32_t from = 0, to = INT32_MAX;
    for (int32_t r = r0; r < end; r++) {
        if (lo[r] > from) from = lo[r];
        if (hi[r] < to) to = hi[r];
    }
    const bool together = from <= to;
    for (int32_t r = r0; r < end; r++) {
        const int32_t last = together ? from - 1 : hi[r];
        if (lo[r] <= last) level_values(t, r, 1, lo[r], last);
    }
    if (!together) return;
    level_values(t, r0, n, from, to);
    for (int32_t r = r0; r < end; r++)
        if (to + 1 <= hi[r]) level_values(t, r, 1, to + 1, hi[r]);
}

/* Span [base, base + 64): only blocks that some row sees are touched. */
static void span_add(rows *t, int32_t base)
{
    for (int32_t r = 0; r < t->n; r++) {
        const int32_t first = t->a->first[t->row + r], last = t->a->last[t->row + r];
        t->lo[r] = first > base ? first : base;
        t->hi[r] = last < base + QN_ATTN_SPAN - 1 ? last : base + QN_ATTN_SPAN - 1;
    }
    const uint32_t all = qn_attn_seen_blocks(t->lo, t->hi, t->n, base);
    qn_attn_open(&t->keys, base, all, t->wide, &t->values, t->n <= TILE_ROWS ? t->last_block : -1);
    for (int32_t r = 0; r < t->n; r += TILE_ROWS) {
        const int32_t n = t->n - r < TILE_ROWS ? t->n - r : TILE_ROWS, b0 = base / QN_KV_BLOCK;
        const uint32_t seen = qn_attn_seen_blocks(t->lo + r, t->hi + r, n, base);
        for (int32_t b = 0, end; qn_attn_next_run(seen, &b, &end); b = end + 1) level_scores(t, r, n, b0 + b, b0 + end);
    }
    for (int32_t r = 0; r < t->n; r++)
        if (t->lo[r] <= t->hi[r]) level_weigh(t, r);
    qn_attn_open(&t->values, base, all, t->wide, NULL, -1);
    for (int32_t r = 0; r < t->n; r += TILE_ROWS) values_tile_add(t, r, t->n - r < TILE_ROWS ? t->n - r : TILE_ROWS);
}

static void rows_run(rows *t)
{
    const qn_attn_args *a = t->a;
    int32_t first = INT32_MAX, last = 0;
    for (int32_t r = t->row; r < t->row + t->n; r++) {
        a->m[r] = -INFINITY;
        a->l[r] = 0;
        if (a->first[r] < first) first = a->first[r];
        if (a->last[r] > last) last = a->last[r];
        memset(a->o + r * a->o_stride, 0, (size_t)a->head_dim_v * sizeof *a->o);
    }
    t->last_block = last / QN_KV_BLOCK;
    for (int32_t base = first / QN_ATTN_SPAN * QN_ATTN_SPAN; base <= last; base += QN_ATTN_SPAN) span_add(t, base);
}

static void attend(const qn_attn_args *a)
{
    rows t = { .a = a, .s = a->scratch, .wide = a->scratch + MAX_ROWS * QN_ATTN_SPAN, .keys = qn_attn_keys(a), .values = qn_attn_values(a) };
    const int32_t most = t.keys.load || t.values.load ? MAX_ROWS : TILE_ROWS;
    for (; t.row < a->n_q; t.row += t.n) {
        t.n = a->n_q - t.row < most ? a->n_q - t.row : most;
        rows_run(&t);
    }
}

#endif

/* Products of one format at one level: against double precision, against scalar bit for bit, and however the work is cut. */
#ifndef MATMUL_CHECK_H
#define MATMUL_CHECK_H

#include "kernel_test.h"

/* One format's weights in file layout, packed, and activations of both kinds. */
typedef struct problem {
    const qn_fmt *fmt;
    int64_t n_rows, n_cols, n_padded;
    int32_t n_tokens;
    size_t row_bytes, panel_bytes, n_panels;
    guarded rows, panels, x, q, d, s, q8, d8, s8, planes, scratch;
    float *decoded;            /* [n_rows][n_cols] */
} problem;

/* How the blocks of weights are made: bytes at random, or pulled to the ends of their range, until all weights are moderate; zeros; any bytes. */
typedef enum weights { W_RANDOM, W_EXTREME, W_ZERO, W_RAW, W_COUNT } weights;

typedef struct shape {
    int64_t n_rows, n_cols;
    int32_t n_tokens;
    weights how;
    fill act;
} shape;

static void block_make(const qn_fmt *fmt, weights how, uint8_t *out, uint64_t *rng)
{
    float w[256];
    memset(out, 0, (size_t)fmt->bytes);
    for (int32_t tries = 0; how != W_ZERO && tries < 200; tries++) {
        for (int32_t i = 0; i < fmt->bytes; i++) {
            const uint64_t r = rng_next(rng) >> 20;
            out[i] = (uint8_t)r;
            if (how == W_EXTREME && r >> 8 & 1) out[i] = r >> 9 & 1 ? 255 : 0;
        }
        if (how == W_RAW) return;
        fmt->decode(out, 1, w);
        bool moderate = true;
        for (int32_t i = 0; i < fmt->block; i++) moderate = moderate && fabsf(w[i]) < 1e4f;
        if (moderate) return;
        memset(out, 0, (size_t)fmt->bytes);
    }
}

static void problem_pack(problem *p, const qn_matmul_row *row, weights how, uint64_t *rng)
{
    p->rows = guard_new((size_t)p->n_rows * p->row_bytes);
    p->panels = guard_new(p->n_panels * p->panel_bytes);
    for (size_t at = 0; at < (size_t)p->n_rows * p->row_bytes; at += (size_t)p->fmt->bytes)
        block_make(p->fmt, how, (uint8_t *)p->rows.ptr + at, rng);
    p->decoded = malloc((size_t)(p->n_rows * p->n_cols) * sizeof(float));
    assert_non_null(p->decoded);
    p->fmt->decode(p->rows.ptr, p->n_rows * p->n_cols / p->fmt->block, p->decoded);
    for (size_t i = 0; i < p->n_panels; i++) {
        const int64_t left = p->n_rows - (int64_t)i * QN_PANEL;
        row->pack(p->fmt, (uint8_t *)p->rows.ptr + i * QN_PANEL * p->row_bytes, p->row_bytes, left < QN_PANEL ? left : QN_PANEL, p->n_cols,
                  (uint8_t *)p->panels.ptr + i * p->panel_bytes);
    }
}

static void problem_open(problem *p, const qn_kernels *k, const qn_fmt *fmt, const shape *sh, uint64_t *rng)
{
    const qn_matmul_row *row = &k->matmul[fmt->id];
    const int32_t n = sh->n_tokens;
    *p = (problem){ .fmt = fmt, .n_rows = sh->n_rows, .n_cols = sh->n_cols, .n_padded = (sh->n_cols + 31) / 32 * 32, .n_tokens = n };
    assert_true(qn_fmt_row_bytes(fmt, p->n_cols, &p->row_bytes));
    p->panel_bytes = row->panel_bytes(fmt, p->n_cols);
    assert_int_equal(p->panel_bytes % 64, 0);
    p->n_panels = (size_t)(p->n_rows + QN_PANEL - 1) / QN_PANEL;
    problem_pack(p, row, sh->how, rng);
    p->x = guard_new((size_t)(n * p->n_cols) * 4);
    p->q = guard_new((size_t)(n * p->n_padded) * 2);
    p->d = guard_new((size_t)(n * p->n_padded / 32) * 4);
    p->s = guard_new((size_t)(n * p->n_padded / 32) * 4);
    p->q8 = guard_new((size_t)(n * p->n_padded));
    p->d8 = guard_new((size_t)(n * p->n_padded / 32) * 4);
    p->s8 = guard_new((size_t)(n * p->n_padded / 32) * 4);
    p->planes = guard_new((size_t)(n * p->n_padded / 32) * (size_t)k->split_bytes);
    p->scratch = guard_new(QN_MATMUL_SCRATCH * 4);
    for (int32_t t = 0; t < n; t++) {
        float *x = (float *)p->x.ptr + t * p->n_cols;
        const int64_t block = t * p->n_padded / 32;
        fill_floats(x, p->n_cols, sh->act, rng);
        k->quantize_a16(x, p->n_cols, (int16_t *)p->q.ptr + t * p->n_padded, (float *)p->d.ptr + block, (float *)p->s.ptr + block);
        k->quantize_a8(x, p->n_cols, (int8_t *)p->q8.ptr + t * p->n_padded, (float *)p->d8.ptr + block, (float *)p->s8.ptr + block);
        if (k->split_a16) k->split_a16((int16_t *)p->q.ptr + t * p->n_padded, p->n_padded / 32, (int8_t *)p->planes.ptr + k->split_bytes * block);
    }
}

static void problem_close(problem *p)
{
    guarded *all[] = { &p->rows, &p->panels, &p->x, &p->q, &p->d, &p->s, &p->q8, &p->d8, &p->s8, &p->planes, &p->scratch };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) guard_free(all[i]);
    free(p->decoded);
}

/* Rows of panels [panel, panel_end) and tokens [token, token_end) into out[n_tokens][n_rows]. */
static void problem_run(const problem *p, const qn_kernels *k, size_t panel, size_t panel_end, int32_t token, int32_t token_end, float *out)
{
    const int64_t row = (int64_t)panel * QN_PANEL, end = (int64_t)panel_end * QN_PANEL, row_end = end < p->n_rows ? end : p->n_rows;
    const int64_t block = token * p->n_padded / 32;
    const qn_matmul_args a = {
        .w = (const uint8_t *)p->panels.ptr + panel * p->panel_bytes,
        .panel_bytes = p->panel_bytes,
        .n_panels = (int64_t)(panel_end - panel),
        .n_rows = row_end - row,
        .n_cols = p->n_cols,
        .n_tokens = token_end - token,
        .act = { .x = (float *)p->x.ptr + token * p->n_cols,
                 .q = (int16_t *)p->q.ptr + token * p->n_padded,
                 .q8 = (int8_t *)p->q8.ptr + token * p->n_padded,
                 .d = (float *)(k->a8 ? p->d8 : p->d).ptr + block,
                 .s = (float *)(k->a8 ? p->s8 : p->s).ptr + block,
                 .planes = k->split_a16 ? (int8_t *)p->planes.ptr + k->split_bytes * block : NULL,
                 .x_stride = p->n_cols,
                 .q_stride = p->n_padded },
        .out = out + token * p->n_rows + row,
        .out_stride = p->n_rows,
        .fmt = p->fmt,
        .scratch = p->scratch.ptr,
    };
    qn_kernels_matmul(k, &k->matmul[p->fmt->id], &a);
}

static double activation(const problem *p, qn_act_kind kind, bool a8, int64_t t, int64_t c)
{
    if (kind == QN_ACT_F32) return (double)((float *)p->x.ptr)[t * p->n_cols + c];
    const int64_t i = t * p->n_padded + c;
    if (!a8) return (double)((int16_t *)p->q.ptr)[i] * (double)((float *)p->d.ptr)[i / 32];
    static const int8_t order[8] = QN_A8_ORDER;
    int32_t at = 0;
    while (order[at] != c % 8) at++;
    return (double)((int8_t *)p->q8.ptr)[i / 8 * 8 + at] * (double)((float *)p->d8.ptr)[i / 32];
}

/* Double precision over the decoded weights; the bound grows with the block's largest weight, for scale and minimum may cancel. */
static void compare_double(const problem *p, qn_act_kind kind, bool a8, const float *out)
{
    const int64_t block = p->fmt->block;
    for (int64_t at = 0; at < p->n_tokens * p->n_rows; at++) {
        const int64_t t = at / p->n_rows, r = at % p->n_rows;
        double sum = 0, mass = 0;
        for (int64_t b = 0; b < p->n_cols; b += block) {
            const float *w = p->decoded + r * p->n_cols + b;
            float biggest = 0;
            for (int64_t i = 0; i < block; i++) biggest = fmaxf(biggest, fabsf(w[i]));
            for (int64_t i = 0; i < block; i++) {
                const double a = activation(p, kind, a8, t, b + i);
                sum += (double)w[i] * a;
                mass += (double)biggest * fabs(a);
            }
        }
        const double bound = 4 * 0x1p-24 * (double)(p->n_cols + 32) * (mass + 1e-30);
        if (!(fabs((double)out[at] - sum) <= bound))
            fail_msg("%s, %lld columns: token %lld row %lld is %g, double precision says %g +- %g", p->fmt->name, (long long)p->n_cols,
                     (long long)t, (long long)r, (double)out[at], sum, bound);
    }
}

/* unpack_row gives what decode gives. */
static void compare_unpacked(const problem *p, const qn_kernels *k)
{
    guarded g = guard_new((size_t)p->n_cols * 4);
    for (int64_t r = 0; r < p->n_rows; r++) {
        const uint8_t *panel = (uint8_t *)p->panels.ptr + (size_t)(r / QN_PANEL) * p->panel_bytes;
        k->matmul[p->fmt->id].unpack_row(p->fmt, panel, (int32_t)(r % QN_PANEL), p->n_cols, g.ptr);
        assert_same((float *)g.ptr, p->decoded + r * p->n_cols, p->n_cols, "%s %s unpack_row %lld", k->level, p->fmt->name, (long long)r);
    }
    guard_free(&g);
}

static void check_shape(const qn_kernels *ref, const qn_kernels *k, const qn_fmt *fmt, const shape *sh, uint64_t *rng)
{
    problem p;
    problem_open(&p, k, fmt, sh, rng);
    const int64_t n = p.n_rows * p.n_tokens;
    guarded want = guard_new((size_t)n * 4), got = guard_new((size_t)n * 4);
    problem_run(&p, ref, 0, p.n_panels, 0, p.n_tokens, want.ptr);
    if (sh->how == W_RANDOM && sh->act == FILL_PLAIN) compare_double(&p, k->matmul[fmt->id].act, k->a8, want.ptr);
    compare_unpacked(&p, k);
    problem_run(&p, k, 0, p.n_panels, 0, p.n_tokens, got.ptr);
    assert_same((float *)got.ptr, (float *)want.ptr, n, "%s %s %lld rows, %lld columns, %d tokens, weights %d, fill %d", k->level, fmt->name,
                (long long)p.n_rows, (long long)p.n_cols, p.n_tokens, (int)sh->how, (int)sh->act);
    memset(got.ptr, 0xA5, (size_t)n * 4); /* the same, cut into calls of one panel and of uneven numbers of tokens */
    for (size_t i = 0; i < p.n_panels; i++)
        for (int32_t t = 0, step = 1; t < p.n_tokens; t += step, step = step % 5 + 1)
            problem_run(&p, k, i, i + 1, t, t + step < p.n_tokens ? t + step : p.n_tokens, got.ptr);
    assert_same((float *)got.ptr, (float *)want.ptr, n, "%s %s cut into calls", k->level, fmt->name);
    guard_free(&want);
    guard_free(&got);
    problem_close(&p);
}

static void check_format(const qn_kernels *ref, const qn_kernels *k, const qn_fmt *fmt)
{
    static const int32_t counts[] = { 1, 2, 3, 4, 5, 6, 7, 12, 13, 16, 17, 33 };
    static const int64_t blocks[] = { 1, 2, 3, 7 };
    enum { N_COUNTS = sizeof counts / sizeof *counts };
    const int64_t unit = fmt->block < 32 ? 32 : fmt->block;
    uint64_t rng = 20260115;
    for (int32_t i = 0; i < N_COUNTS; i++) {
        const shape tokens = { counts[(i * 5 + 7) % N_COUNTS], unit * blocks[i % 4], counts[i], W_RANDOM, FILL_PLAIN };
        const shape rows = { counts[i], unit, 1 + i % 7, W_EXTREME, FILL_PLAIN };
        check_shape(ref, k, fmt, &tokens, &rng);
        check_shape(ref, k, fmt, &rows, &rng);
    }
    for (int32_t i = 0; i < W_COUNT * FILL_COUNT; i++)
        check_shape(ref, k, fmt, &(shape){ 17, unit * 2, i % 2 ? 7 : 1, (weights)(i % W_COUNT), (fill)(i / W_COUNT) }, &rng);
    check_shape(ref, k, fmt, &(shape){ 16, 32 * 256 + unit, 7, W_RANDOM, FILL_PLAIN }, &rng); /* longer than a piece of scratch */
    if (fmt->block == 1) check_shape(ref, k, fmt, &(shape){ 18, 37, 8, W_RANDOM, FILL_PLAIN }, &rng);
}

#endif

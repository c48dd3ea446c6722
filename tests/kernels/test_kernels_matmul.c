/* Products of every format at every level: against double precision, against scalar bit for bit, and however the work is cut. */
#include "kernel_test.h"

#include <strings.h>

static const char *time_filter; /* --time FORMAT */
static double read_rate;        /* bytes a second that one thread reads from memory */

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
    p->planes = guard_new((size_t)(n * p->n_padded) * 2);
    p->scratch = guard_new(QN_MATMUL_SCRATCH * 4);
    for (int32_t t = 0; t < n; t++) {
        float *x = (float *)p->x.ptr + t * p->n_cols;
        const int64_t block = t * p->n_padded / 32;
        fill_floats(x, p->n_cols, sh->act, rng);
        k->quantize_a16(x, p->n_cols, (int16_t *)p->q.ptr + t * p->n_padded, (float *)p->d.ptr + block, (float *)p->s.ptr + block);
        k->quantize_a8(x, p->n_cols, (int8_t *)p->q8.ptr + t * p->n_padded, (float *)p->d8.ptr + block, (float *)p->s8.ptr + block);
        if (k->split_a16) k->split_a16((int16_t *)p->q.ptr + t * p->n_padded, p->n_padded / 32, (int8_t *)p->planes.ptr + 64 * block);
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
                 .planes = k->split_a16 ? (int8_t *)p->planes.ptr + 64 * block : NULL,
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

static void check_level(const qn_kernels *ref, const qn_kernels *k)
{
    qn_kernels ref8 = *ref, k8 = *k;
    ref8.a8 = k8.a8 = true;
    for (int32_t f = 0; f < qn_fmt_count(); f++) {
        const qn_fmt *fmt = qn_fmt_at(f);
        if (!fmt->decode) continue;
        check_format(ref, k, fmt);
        if (k->matmul[fmt->id].act == QN_ACT_A16) check_format(&ref8, &k8, fmt);
    }
}

static void test_matmul(void **state)
{
    (void)state;
    each_level(check_level);
}

/* Every type number has a row, every operation a function. */
static void test_table_is_full(void **state)
{
    (void)state;
    qn_kernels k;
    assert_int_equal(qn_kernels_init(&k, NULL, false, NULL), QN_OK);
    for (int32_t i = 0; i < QN_MAX_FMT_ID; i++) {
        const qn_matmul_row *row = &k.matmul[i];
        assert_true(row->isa && row->panel_bytes && row->pack && row->unpack_row && row->run);
        assert_int_equal(row->act == QN_ACT_A16, row->run8 != NULL);
    }
    assert_true(k.quantize_a16 && k.quantize_a8 && k.rms_norm && k.layer_norm && k.add && k.scale && k.swiglu && k.geglu && k.silu && k.gelu && k.rope);
    assert_true(k.softmax && k.softcap && k.exp && k.store_k && k.store_v && k.attention && k.argmax && k.peak);
}

static void test_levels(void **state)
{
    (void)state;
    qn_kernels k;
    qn_err err;
    assert_string_equal(qn_isa_at(0)->name, "scalar");
    assert_int_equal(qn_kernels_init(&k, "scalar", false, &err), QN_OK);
    assert_string_equal(k.level, "scalar");
    assert_int_equal(qn_kernels_init(&k, "avx9", false, &err), QN_ERR_ARG);
    assert_non_null(strstr(err.text, "scalar"));
    const char *names[16];
    const int32_t n = qn_cpu_levels(names, 16);
    assert_true(n >= 1 && n <= 16);
    assert_int_equal(qn_cpu_levels(NULL, 0), n);
    assert_int_equal(qn_kernels_init(&k, NULL, false, &err), QN_OK);
    assert_string_equal(k.level, names[n - 1]);
}

/* ---- timing ---- */

typedef struct timing {
    const qn_kernels *k;
    problem p;
    size_t panel, step; /* panels of a call; the next call goes on behind them */
    float *out;
} timing;

static void time_call(void *arg)
{
    timing *t = arg;
    problem_run(&t->p, t->k, t->panel, t->panel + t->step, 0, t->p.n_tokens, t->out);
    t->panel = t->panel + 2 * t->step <= t->p.n_panels ? t->panel + t->step : 0;
}

/* Seconds of a call, which does one part in n_calls of the product; *bytes: what it reads of the panels. */
static double time_shape(const qn_kernels *k, const qn_fmt *fmt, const shape *sh, size_t n_calls, double *bytes)
{
    uint64_t rng = 1;
    timing t = { .k = k };
    problem_open(&t.p, k, fmt, sh, &rng);
    t.step = t.p.n_panels / n_calls;
    t.out = malloc((size_t)(sh->n_rows * sh->n_tokens) * sizeof *t.out);
    assert_non_null(t.out);
    *bytes = (double)(t.step * t.p.panel_bytes);
    const double s = time_best(time_call, &t);
    free(t.out);
    problem_close(&t.p);
    return s;
}

static void time_read(void *arg)
{
    enum { PART = 4 << 20, PARTS = 32 };
    static size_t part;
    const uint64_t *at = (const uint64_t *)((const char *)arg + part++ % PARTS * PART);
    uint64_t sum[8] = { 0 };
    for (size_t i = 0; i < PART / 8; i += 8)
        for (size_t j = 0; j < 8; j++) sum[j] += at[i + j];
    volatile uint64_t sink = sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
    (void)sink;
}

/* One token with weights in L2 and in memory, 4 tokens in memory, 512 tokens: the shapes of decode, verification and prefill. */
static void time_format(const qn_kernels *k, const qn_fmt *fmt, double peak)
{
    const int64_t rows = 64 * (1600000 * (int64_t)fmt->block / fmt->bytes / 1536 / 16 * 16); /* 100 MB */
    double n_l2, n_mem, n_four, n_gemm;
    const double l2 = time_shape(k, fmt, &(shape){ 320, 1536, 1, W_ZERO, FILL_PLAIN }, 1, &n_l2);
    const double mem = time_shape(k, fmt, &(shape){ rows, 1536, 1, W_ZERO, FILL_PLAIN }, 64, &n_mem);
    const double four = time_shape(k, fmt, &(shape){ rows, 1536, 4, W_ZERO, FILL_PLAIN }, 64, &n_four);
    const double gemm = time_shape(k, fmt, &(shape){ 576, 1536, 512, W_ZERO, FILL_PLAIN }, 6, &n_gemm);
    const double macs = 512.0 * 96 * 1536 / gemm;
    print_message("%-10s %-8s %s 1 token: L2 %6.1f GB/s, memory %6.1f GB/s (%3.0f %%); 4 tokens: memory %6.1f GB/s; "
                  "512 tokens: %6.1f GMAC/s (%3.0f %%)\n",
                  k->level, fmt->name, k->a8 ? "A8 " : k->matmul[fmt->id].act == QN_ACT_A16 ? "A16" : "F32", n_l2 / l2 / 1e9, n_mem / mem / 1e9,
                  100 * n_mem / mem / read_rate, n_four / four / 1e9, macs / 1e9, 100 * macs / peak);
}

static void time_level(const qn_kernels *ref, const qn_kernels *k)
{
    (void)ref;
    if (!strcmp(k->level, "scalar")) return;
    const double peak = peak_rate(k);
    qn_kernels k8 = *k;
    k8.a8 = true;
    print_message("%s: peak %.1f GMAC/s of 16-bit activations\n", k->level, peak / 1e9);
    for (int32_t f = 0; f < qn_fmt_count(); f++) {
        const qn_fmt *fmt = qn_fmt_at(f);
        if (time_filter && strcasecmp(time_filter, fmt->name)) continue;
        time_format(k, fmt, peak);
        if (k->matmul[fmt->id].act == QN_ACT_A16) time_format(&k8, fmt, peak);
    }
}

static void time_all(void)
{
    guarded g = guard_new(128u << 20);
    read_rate = (double)(4u << 20) / time_best(time_read, g.ptr);
    print_message("one thread; reading memory: %.1f GB/s; shares are of that and of the level's peak\n", read_rate / 1e9);
    guard_free(&g);
    each_level(time_level);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_is_full),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_matmul),
    };
    if (argc > 1 && !strcmp(argv[1], "--time")) {
        time_filter = argc > 2 ? argv[2] : NULL;
        time_all();
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Attention over every pair of cache formats: scalar against double precision, every level against scalar bit for bit, rows alone or together, garbage
 * where nobody may look. */
#include "kernel_test.h"
#include "src/ops/attn_join.h"

typedef struct problem {
    int32_t n_pos, dim, dim_v, n_q;
    int32_t k_fmt, v_fmt;       /* type numbers */
    const void **k, **v;        /* blocks; NULL where no row looks */
    float *k_wide, *v_wide;     /* [n_pos / 16][dim][16], [n_pos][dim_v]: what they stand for */
    guarded *blocks;
    int32_t n_blocks;
    float *q, *m, *l;
    int32_t *first, *last;
    float softcap;
    float *slope;               /* or NULL */
    int32_t *at;
    guarded scratch;
} problem;

static void *block_new(problem *p, int32_t b, int32_t dim, bool is_k, uint64_t *rng)
{
    qn_kernels ref;
    assert_int_equal(qn_kernels_init(&ref, "scalar", true, NULL), QN_OK);
    const qn_kv_row *row = &ref.kv[is_k ? p->k_fmt : p->v_fmt];
    guarded g = guard_new(qn_kv_block_bytes(row, dim));
    float x[QN_KV_MAX_DIM];
    for (int32_t slot = 0; slot < 16; slot++) {
        const int32_t pos = b * 16 + slot;
        bool seen = false;
        for (int32_t r = 0; r < p->n_q; r++) seen = seen || (pos >= p->first[r] && pos <= p->last[r]);
        for (int32_t d = 0; d < dim; d++) x[d] = seen ? rng_unit(rng) : d % 2 ? NAN : -INFINITY;
        (is_k ? qn_kv_store_k : qn_kv_store_v)(row, x, dim, slot, g.ptr);
    }
    if (is_k) row->load_k(g.ptr, dim, p->k_wide + b * 16 * dim);
    else row->load_v(g.ptr, dim, p->v_wide + b * 16 * dim);
    p->blocks[p->n_blocks++] = g;
    return g.ptr;
}

/* Rows see [first, last]: causal (last grows), or in a window, or each its own. */
typedef enum view { VIEW_CAUSAL, VIEW_WINDOW, VIEW_OWN, VIEW_COUNT } view;

/* @param fmt  of keys and of values, the type's number */
static problem problem_open(int32_t n_q, int32_t n_pos, int32_t dim, int32_t dim_v, const int32_t *fmt, view how, uint64_t *rng)
{
    problem p = { .n_pos = n_pos, .dim = dim, .dim_v = dim_v, .n_q = n_q, .k_fmt = fmt[0], .v_fmt = fmt[1] };
    const int32_t n_blocks = (n_pos + 15) / 16;
    p.q = malloc((size_t)(n_q * dim) * 4);
    p.m = malloc((size_t)n_q * 4);
    p.l = malloc((size_t)n_q * 4);
    p.first = malloc((size_t)n_q * 4);
    p.last = malloc((size_t)n_q * 4);
    p.k = calloc((size_t)n_blocks, sizeof *p.k);
    p.v = calloc((size_t)n_blocks, sizeof *p.v);
    p.k_wide = malloc((size_t)(n_blocks * 16 * dim) * sizeof *p.k_wide);
    p.v_wide = malloc((size_t)(n_blocks * 16 * dim_v) * sizeof *p.v_wide);
    p.blocks = calloc((size_t)n_blocks * 2, sizeof *p.blocks);
    p.scratch = guard_new((size_t)qn_attn_scratch(dim, dim_v) * 4);
    fill_floats(p.q, n_q * dim, FILL_PLAIN, rng);
    for (int32_t i = 0; i < n_q * dim; i++) p.q[i] *= 0.3f;
    p.at = malloc((size_t)n_q * 4);
    for (int32_t r = 0; r < n_q; r++) {
        const int32_t causal = n_pos - 1 - (n_q - 1 - r) / 2;
        p.last[r] = how == VIEW_OWN ? (int32_t)(rng_next(rng) % (uint64_t)n_pos) : causal < 0 ? 0 : causal;
        p.first[r] = how == VIEW_CAUSAL ? 0 : how == VIEW_WINDOW ? p.last[r] - 20 : (int32_t)(rng_next(rng) % (uint64_t)(p.last[r] + 1));
        if (p.first[r] < 0) p.first[r] = 0;
        p.at[r] = how == VIEW_OWN ? (int32_t)(rng_next(rng) % (uint64_t)n_pos) : p.last[r]; /* of an encoder: before what it sees, too */
    }
    for (int32_t b = 0; b < n_blocks; b++) {
        bool used = false;
        for (int32_t r = 0; r < n_q; r++) used = used || (p.first[r] / 16 <= b && b <= p.last[r] / 16);
        if (!used) continue;
        p.k[b] = block_new(&p, b, dim, true, rng);
        p.v[b] = block_new(&p, b, dim_v, false, rng);
    }
    return p;
}

static void problem_close(problem *p)
{
    for (int32_t i = 0; i < p->n_blocks; i++) guard_free(&p->blocks[i]);
    guard_free(&p->scratch);
    free(p->q);
    free(p->slope);
    free(p->at);
    free(p->m);
    free(p->l);
    free(p->first);
    free(p->last);
    free(p->k);
    free(p->v);
    free(p->k_wide);
    free(p->v_wide);
    free(p->blocks);
}

/* Rows [row, end) into out[n_q][dim_v], as sums, m and l beside it; then divided. */
static void problem_run(const problem *p, const qn_kernels *k, int32_t row, int32_t end, float *out)
{
    k->attention(&(qn_attn_args){
        .q = p->q + row * p->dim, .q_stride = p->dim, .n_q = end - row, .head_dim = p->dim, .head_dim_v = p->dim_v, .first = p->first + row,
        .last = p->last + row, .k_row = &k->kv[p->k_fmt], .v_row = &k->kv[p->v_fmt],
        .k_blocks = p->k, .v_blocks = p->v, .softcap = p->softcap,
        .slope = p->slope ? p->slope + row : NULL, .at = p->at + row, .o = out + row * p->dim_v, .o_stride = p->dim_v,
        .m = p->m + row, .l = p->l + row, .scratch = p->scratch.ptr });
    for (int32_t r = row; r < end; r++) qn_attn_finish(p->l[r], out + r * p->dim_v, p->dim_v, out + r * p->dim_v);
}

static double score(const problem *p, int32_t r, int32_t pos)
{
    double s = 0;
    for (int32_t d = 0; d < p->dim; d++) s += (double)p->q[r * p->dim + d] * (double)p->k_wide[pos / 16 * 16 * p->dim + d * 16 + pos % 16];
    if (p->softcap > 0) s = (double)p->softcap * tanh(s / (double)p->softcap);
    return p->slope ? s - (double)p->slope[r] * abs(pos - p->at[r]) : s;
}

/* A score is a sum of dim terms below 1/3, each rounded; an error there is as large, relatively, in its weight. */
static void compare_double(const problem *p, const float *out)
{
    const double bound = 2e-6 + p->dim * 4 * 0x1p-24 / 3;
    double *o = malloc((size_t)p->dim_v * sizeof *o);
    for (int32_t r = 0; r < p->n_q; r++) {
        double l = 0;
        for (int32_t d = 0; d < p->dim_v; d++) o[d] = 0;
        for (int32_t pos = p->first[r]; pos <= p->last[r]; pos++) {
            const double w = exp(score(p, r, pos));
            l += w;
            for (int32_t d = 0; d < p->dim_v; d++) o[d] += w * (double)p->v_wide[pos * p->dim_v + d];
        }
        for (int32_t d = 0; d < p->dim_v; d++)
            if (!(fabs((double)out[r * p->dim_v + d] - o[d] / l) <= bound))
                fail_msg("row %d [%d] is %g, double precision says %g", r, d, (double)out[r * p->dim_v + d], o[d] / l);
    }
    free(o);
}

static void check_problem(const problem *p, const qn_kernels *ref, const qn_kernels *k)
{
    const int64_t n = p->n_q * p->dim_v;
    guarded want = guard_new((size_t)n * 4), got = guard_new((size_t)n * 4);
    problem_run(p, ref, 0, p->n_q, want.ptr);
    compare_double(p, want.ptr);
    float *m = malloc((size_t)p->n_q * 4), *l = malloc((size_t)p->n_q * 4);
    assert_true(m && l);
    memcpy(m, p->m, (size_t)p->n_q * 4);
    memcpy(l, p->l, (size_t)p->n_q * 4);
    problem_run(p, k, 0, p->n_q, got.ptr);
    assert_same(p->m, m, p->n_q, "%s attention: largest scores", k->level);
    assert_same(p->l, l, p->n_q, "%s attention: sums of weights", k->level);
    free(m);
    free(l);
    assert_same((float *)got.ptr, (float *)want.ptr, n, "%s attention: %d rows, %d positions, %d x %d", k->level, p->n_q, p->n_pos, p->dim, p->dim_v);
    memset(got.ptr, 0xA5, (size_t)n * 4);
    for (int32_t r = 0, step = 1; r < p->n_q; r += step, step = step % 4 + 1)
        problem_run(p, k, r, r + step < p->n_q ? r + step : p->n_q, got.ptr);
    assert_same((float *)got.ptr, (float *)want.ptr, n, "%s attention cut into calls", k->level);
    guard_free(&want);
    guard_free(&got);
}

/* Pairs of cache formats, F16 with itself first. @return how many */
static int32_t format_pairs(const qn_kernels *k, int32_t pair[][2])
{
    int32_t id[8], n = 0, n_pairs = 1;
    pair[0][0] = pair[0][1] = qn_fmt_by_name("F16")->id;
    for (int32_t i = 0; i < QN_MAX_FMT_ID && n < 8; i++)
        if (k->kv[i].kind != QN_KV_ABSENT) id[n++] = i;
    for (int32_t i = 0; i < n * n; i++) {
        pair[n_pairs][0] = id[i / n];
        pair[n_pairs][1] = id[i % n];
        n_pairs++;
    }
    return n_pairs;
}

/* From 1/256 to 1, a row its own. */
static void slopes_add(problem *p, uint64_t *rng)
{
    p->slope = malloc((size_t)p->n_q * 4);
    assert_non_null(p->slope);
    for (int32_t r = 0; r < p->n_q; r++) p->slope[r] = exp2f(-(float)(rng_next(rng) % 256) / 32);
}

static void check_level(const qn_kernels *ref, const qn_kernels *k)
{
    static const int32_t dims[][2] = { { 8, 8 }, { 24, 40 }, { 64, 64 }, { 128, 104 }, { 256, 256 }, { 192, 128 }, { 576, 512 } };
    static const int32_t n_rows[] = { 1, 2, 3, 4, 5, 6, 7, 13, 20 };
    static const int32_t n_pos[] = { 1, 2, 15, 16, 17, 40, 63, 64, 65, 130, 300 };
    uint64_t rng = 5;
    int32_t pair[65][2];
    const int32_t n_pairs = format_pairs(k, pair);
    assert_int_equal(n_pairs, 26);
    for (int32_t i = 0; i < 7 * 9 * 11 * 2; i++) {
        const int32_t *dim = dims[i % 7];
        problem p = problem_open(n_rows[i % 9], n_pos[i % 11], dim[0], dim[1], pair[i % 3 ? i % n_pairs : 0], (view)(i % VIEW_COUNT), &rng);
        p.softcap = i % 4 == 3 ? 3.0f : 0;
        if (i % 5 == 2) slopes_add(&p, &rng);
        check_problem(&p, ref, k);
        problem_close(&p);
    }
}

static void test_attention(void **state)
{
    (void)state;
    each_level(check_level);
}

/* A NaN in one row's query, or an infinite value seen by one row, stays with that row. */
static void check_apart(const qn_kernels *ref, const qn_kernels *k)
{
    (void)ref;
    uint64_t rng = 9;
    const int32_t f16 = qn_fmt_by_name("F16")->id;
    problem p = problem_open(6, 100, 64, 64, (int32_t[]){ f16, f16 }, VIEW_CAUSAL, &rng);
    float clean[6 * 64], out[6 * 64];
    problem_run(&p, k, 0, 6, clean);
    uint16_t *v = (uint16_t *)(uintptr_t)p.v[99 / 16];
    for (int32_t d = 0; d < 64; d++) v[99 % 16 * 64 + d] = 0x7c00; /* position 99: the last two rows alone */
    p.q[64] = NAN;                                                /* row 1 */
    problem_run(&p, k, 0, 6, out);
    for (int32_t r = 0; r < 4; r++) {
        if (r != 1) assert_memory_equal(clean + r * 64, out + r * 64, 64 * 4);
        else assert_true(out[r * 64] != out[r * 64]);
    }
    assert_true(isinf(out[5 * 64]));
    problem_close(&p);
}

static void test_rows_apart(void **state)
{
    (void)state;
    each_level(check_apart);
}

/* Parts of a row's positions, joined, and a sink, against double precision over all of them. */
static void check_join(const qn_kernels *ref, const qn_kernels *k)
{
    enum { DIM = 40, N_POS = 700 };
    (void)ref;
    uint64_t rng = 11;
    int32_t pair[65][2];
    (void)format_pairs(k, pair);
    problem p = problem_open(1, N_POS, DIM, DIM, pair[0], VIEW_CAUSAL, &rng);
    const float sink = 2.5f;
    float m = -INFINITY, l = 0, o[DIM] = { 0 }, part[DIM];
    for (int32_t from = 0; from < N_POS; from += QN_ATTN_PART) {
        p.first[0] = from;
        p.last[0] = from + QN_ATTN_PART < N_POS ? from + QN_ATTN_PART - 1 : N_POS - 1;
        k->attention(&(qn_attn_args){ .q = p.q, .q_stride = DIM, .n_q = 1, .head_dim = DIM, .head_dim_v = DIM, .first = p.first, .last = p.last,
                                      .k_row = &k->kv[p.k_fmt], .v_row = &k->kv[p.v_fmt],
                                      .k_blocks = p.k, .v_blocks = p.v, .o = part, .o_stride = DIM, .m = p.m, .l = p.l, .scratch = p.scratch.ptr });
        qn_attn_join(k, &m, &l, o, p.m[0], p.l[0], part, DIM);
    }
    p.first[0] = 0;
    float out[DIM];
    qn_attn_finish(l, o, DIM, out);
    compare_double(&p, out);
    double sum = exp((double)sink);
    for (int32_t pos = 0; pos < N_POS; pos++) sum += exp(score(&p, 0, pos));
    const double share = 1 - exp((double)sink) / sum; /* what the sink leaves to the values */
    float with[DIM];
    qn_attn_join(k, &m, &l, o, sink, 1, NULL, DIM);
    qn_attn_finish(l, o, DIM, with);
    for (int32_t d = 0; d < DIM; d++) assert_true(fabs((double)with[d] - (double)out[d] * share) < 1e-6);
    problem_close(&p);
}

static void test_join(void **state)
{
    (void)state;
    each_level(check_join);
}

/* ---- timing ---- */

typedef struct timing {
    const qn_kernels *k;
    problem p;
    float *out;
} timing;

static void time_call(void *arg)
{
    const timing *t = arg;
    problem_run(&t->p, t->k, 0, t->p.n_q, t->out);
}

static const char *timed_level; /* NULL: all */

/* Rows of a decode step (one group of heads) and of a prefill chunk, over one KV head; both sides of a format. */
static void time_level(const qn_kernels *ref, const qn_kernels *k)
{
    static const struct {
        int32_t n_q, n_pos, dim;
    } shapes[] = { { 1, 1024, 64 }, { 3, 1024, 64 }, { 4, 1024, 256 }, { 4, 65536, 128 }, { 96, 512, 64 }, { 96, 512, 128 }, { 96, 512, 256 } };
    (void)ref;
    if (timed_level && strcmp(timed_level, k->level) != 0) return;
    print_message("%s: peak of 16-bit products %.1f GMAC/s\n", k->level, peak_rate(k) / 1e9);
    for (size_t i = 0; i < QN_MAX_FMT_ID * sizeof shapes / sizeof *shapes; i++) {
        const int32_t shape = (int32_t)i / QN_MAX_FMT_ID, fmt = (int32_t)i % QN_MAX_FMT_ID;
        const int32_t n_q = shapes[shape].n_q, n_pos = shapes[shape].n_pos, dim = shapes[shape].dim;
        if (k->kv[fmt].kind == QN_KV_ABSENT) continue;
        uint64_t rng = 1;
        timing t = { .k = k, .p = problem_open(n_q, n_pos, dim, dim, (int32_t[]){ fmt, fmt }, VIEW_CAUSAL, &rng) };
        double mac = 0;
        for (int32_t r = 0; r < t.p.n_q; r++) mac += 2.0 * (t.p.last[r] - t.p.first[r] + 1) * t.p.dim;
        t.out = malloc((size_t)(t.p.n_q * t.p.dim) * sizeof *t.out);
        assert_non_null(t.out);
        const double s = time_best(time_call, &t);
        print_message("%-10s %-5s %3d rows, %5d positions of %3d: %8.1f us, %6.1f GMAC/s\n", k->level, qn_fmt_by_id(fmt)->name, n_q, n_pos, dim,
                      s * 1e6, mac / s / 1e9);
        free(t.out);
        problem_close(&t.p);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_attention), cmocka_unit_test(test_rows_apart), cmocka_unit_test(test_join) };
    if (argc > 1 && !strcmp(argv[1], "--time")) {
        timed_level = argv[2];
        each_level(time_level);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Layers with a state: scalar against double precision, every level against scalar bit for bit, and tokens at once against one by one. */
#include "kernel_test.h"

enum { N_TOKENS = 5, GAP = 3 }; /* floats between rows beyond their length */

static const int32_t sizes[] = { 1, 3, 7, 8, 13, 16, 17, 24, 31, 32, 48, 64 };
enum { N_SIZES = sizeof sizes / sizeof *sizes };

static guarded random_floats(int64_t n, fill how, uint64_t *rng)
{
    guarded g = guard_new((size_t)n * 4);
    fill_floats(g.ptr, n, how, rng);
    return g;
}

static guarded copy_of(const guarded *g, int64_t n)
{
    guarded c = guard_new((size_t)n * 4);
    memcpy(c.ptr, g->ptr, (size_t)n * 4);
    return c;
}

/* n rows of width floats, the last of which ends at a guard page. */
static int64_t rows_floats(int32_t n, int64_t width)
{
    return n * (width + GAP) - GAP;
}

static int64_t lanes(int64_t n)
{
    return (n + QN_STATE_LANES - 1) / QN_STATE_LANES * QN_STATE_LANES;
}

/* States of n columns and d rows: the lanes that are there. */
static void same_state(const qn_kernels *k, const guarded *want, const guarded *got, int64_t n, int32_t d, const char *what)
{
    for (int64_t j = 0; j < n; j++)
        for (int32_t i = 0; i < d; i++) {
            const int64_t at = (j / 16 * d + i) * 16 + j % 16;
            assert_same((float *)got->ptr + at, (float *)want->ptr + at, 1, "%s %s: state of %lld x %d, column %lld", k->level, what, (long long)n, d,
                        (long long)j);
        }
}

/* ---- linear attention ---- */

typedef struct scan_case {
    qn_scan_args args;
    guarded state, q, k, v, decay, rate, out;
    int64_t state_floats, out_floats;
} scan_case;

static scan_case scan_open(int32_t d_k, int32_t d_v, bool delta, fill how, uint64_t *rng)
{
    scan_case c = { .state_floats = lanes(d_v) * d_k, .out_floats = rows_floats(N_TOKENS, d_v) };
    c.state = random_floats(c.state_floats, FILL_PLAIN, rng);
    c.q = random_floats(rows_floats(N_TOKENS, d_k), FILL_PLAIN, rng);
    c.k = random_floats(rows_floats(N_TOKENS, d_k), how, rng);
    c.v = random_floats(rows_floats(N_TOKENS, d_v), how, rng);
    c.decay = random_floats(N_TOKENS, FILL_PLAIN, rng);
    c.rate = random_floats(N_TOKENS, FILL_PLAIN, rng);
    c.out = guard_new((size_t)c.out_floats * 4);
    c.args = (qn_scan_args){
        .state = c.state.ptr, .d_k = d_k, .d_v = d_v, .n_tokens = N_TOKENS, .q = c.q.ptr, .k = c.k.ptr, .v = c.v.ptr, .qk_stride = d_k + GAP,
        .v_stride = d_v + GAP, .decay = c.decay.ptr, .rate = c.rate.ptr, .delta = delta, .out = c.out.ptr, .out_stride = d_v + GAP,
    };
    return c;
}

static void scan_close(scan_case *c)
{
    guarded *all[] = { &c->state, &c->q, &c->k, &c->v, &c->decay, &c->rate, &c->out };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) guard_free(all[i]);
}

/* One token after another, in calls of their own. */
static void scan_singly(const qn_kernels *k, qn_scan_args a)
{
    const int32_t n = a.n_tokens;
    a.n_tokens = 1;
    for (int32_t t = 0; t < n; t++) {
        k->scan(&a);
        a.q += a.qk_stride;
        a.k += a.qk_stride;
        a.v += a.v_stride;
        a.decay++;
        a.rate++;
        a.out += a.out_stride;
    }
}

static void check_scan(const qn_kernels *ref, const qn_kernels *k)
{
    uint64_t rng = 5;
    for (int32_t i = 0; i < N_SIZES * N_SIZES * FILL_COUNT * 2; i++) {
        const int32_t d_k = sizes[i % N_SIZES], d_v = sizes[i / N_SIZES % N_SIZES];
        const fill how = (fill)(i / N_SIZES / N_SIZES % FILL_COUNT);
        const bool delta = i >= N_SIZES * N_SIZES * FILL_COUNT;
        scan_case c = scan_open(d_k, d_v, delta, how, &rng);
        guarded state = copy_of(&c.state, c.state_floats), out = copy_of(&c.out, c.out_floats);
        qn_scan_args a = c.args;
        a.state = state.ptr;
        a.out = out.ptr;
        ref->scan(&c.args);
        scan_singly(k, a);
        assert_same((float *)out.ptr, (float *)c.out.ptr, c.out_floats, "%s scan %d x %d, delta %d, fill %d", k->level, d_k, d_v, delta, how);
        same_state(k, &c.state, &state, d_v, d_k, "scan");
        guard_free(&state);
        guard_free(&out);
        scan_close(&c);
    }
}

static void test_scan_levels(void **state)
{
    (void)state;
    each_level(check_scan);
}

/* The definition in double precision, S as [d_k][d_v]. */
static void scan_double(const qn_scan_args *a, double *s, double *out)
{
    for (int32_t t = 0; t < a->n_tokens; t++) {
        const float *q = a->q + t * a->qk_stride, *k = a->k + t * a->qk_stride;
        for (int32_t j = 0; j < a->d_v; j++) {
            double brought = 0, seen = 0;
            for (int32_t i = 0; i < a->d_k; i++) s[i * a->d_v + j] *= (double)a->decay[t];
            for (int32_t i = 0; i < a->d_k; i++) brought += (double)k[i] * s[i * a->d_v + j];
            const double u = (double)a->rate[t] * ((double)a->v[t * a->v_stride + j] - (a->delta ? brought : 0));
            for (int32_t i = 0; i < a->d_k; i++) {
                s[i * a->d_v + j] += (double)k[i] * u;
                seen += (double)q[i] * s[i * a->d_v + j];
            }
            out[t * a->d_v + j] = seen;
        }
    }
}

static void test_scan_accuracy(void **state)
{
    (void)state;
    enum { D_K = 24, D_V = 40 };
    qn_kernels k;
    uint64_t rng = 9;
    assert_int_equal(qn_kernels_init(&k, "scalar", true, NULL), QN_OK);
    for (int32_t delta = 0; delta < 2; delta++) {
        static double s[D_K * D_V], want[N_TOKENS * D_V];
        scan_case c = scan_open(D_K, D_V, delta, FILL_PLAIN, &rng);
        for (int32_t t = 0; t < N_TOKENS; t++) {
            ((float *)c.decay.ptr)[t] = 0.9f - 0.1f * (float)t;
            ((float *)c.rate.ptr)[t] = 0.02f;
        }
        for (int32_t i = 0; i < D_K; i++)
            for (int32_t j = 0; j < D_V; j++) s[i * D_V + j] = (double)c.args.state[(j / 16 * D_K + i) * 16 + j % 16];
        scan_double(&c.args, s, want);
        k.scan(&c.args);
        for (int32_t t = 0; t < N_TOKENS; t++)
            for (int32_t j = 0; j < D_V; j++)
                assert_true(fabs((double)c.args.out[t * c.args.out_stride + j] - want[t * D_V + j]) < 1e-4);
        for (int32_t i = 0; i < D_K; i++)
            for (int32_t j = 0; j < D_V; j++)
                assert_true(fabs((double)c.args.state[(j / 16 * D_K + i) * 16 + j % 16] - s[i * D_V + j]) < 1e-5);
        scan_close(&c);
    }
}

/* ---- selective state spaces ---- */

typedef struct selective_case {
    qn_selective_args args;
    guarded state, a, x, dt, b, c, out;
    int64_t state_floats, out_floats;
} selective_case;

static selective_case selective_open(int32_t n, int32_t d_state, fill how, uint64_t *rng)
{
    selective_case s = { .state_floats = lanes(n) * d_state, .out_floats = rows_floats(N_TOKENS, n) };
    s.state = random_floats(s.state_floats, FILL_PLAIN, rng);
    s.a = random_floats(rows_floats(d_state, n), FILL_PLAIN, rng);
    s.x = random_floats(rows_floats(N_TOKENS, n), how, rng);
    s.dt = random_floats(rows_floats(N_TOKENS, n), FILL_PLAIN, rng);
    s.b = random_floats(rows_floats(N_TOKENS, d_state), FILL_PLAIN, rng);
    s.c = random_floats(rows_floats(N_TOKENS, d_state), FILL_PLAIN, rng);
    s.out = guard_new((size_t)s.out_floats * 4);
    s.args = (qn_selective_args){
        .state = s.state.ptr, .n = n, .d_state = d_state, .n_tokens = N_TOKENS, .a = s.a.ptr, .a_stride = n + GAP, .x = s.x.ptr, .dt = s.dt.ptr,
        .x_stride = n + GAP, .dt_stride = n + GAP, .b = s.b.ptr, .c = s.c.ptr, .bc_stride = d_state + GAP, .out = s.out.ptr, .out_stride = n + GAP,
    };
    return s;
}

static void selective_close(selective_case *s)
{
    guarded *all[] = { &s->state, &s->a, &s->x, &s->dt, &s->b, &s->c, &s->out };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) guard_free(all[i]);
}

static void selective_singly(const qn_kernels *k, qn_selective_args a)
{
    const int32_t n = a.n_tokens;
    a.n_tokens = 1;
    for (int32_t t = 0; t < n; t++) {
        k->selective(&a);
        a.x += a.x_stride;
        a.dt += a.dt_stride;
        a.b += a.bc_stride;
        a.c += a.bc_stride;
        a.out += a.out_stride;
    }
}

static void check_selective(const qn_kernels *ref, const qn_kernels *k)
{
    uint64_t rng = 15;
    for (int32_t i = 0; i < N_SIZES * 4 * FILL_COUNT; i++) {
        const int32_t n = sizes[i % N_SIZES], d_state = (const int32_t[]){ 1, 4, 16, 19 }[i / N_SIZES % 4];
        const fill how = (fill)(i / N_SIZES / 4);
        selective_case s = selective_open(n, d_state, how, &rng);
        guarded state = copy_of(&s.state, s.state_floats), out = copy_of(&s.out, s.out_floats);
        qn_selective_args a = s.args;
        a.state = state.ptr;
        a.out = out.ptr;
        ref->selective(&s.args);
        selective_singly(k, a);
        assert_same((float *)out.ptr, (float *)s.out.ptr, s.out_floats, "%s selective, %d channels, %d, fill %d", k->level, n, d_state, how);
        same_state(k, &s.state, &state, n, d_state, "selective");
        guard_free(&state);
        guard_free(&out);
        selective_close(&s);
    }
}

static void test_selective_levels(void **state)
{
    (void)state;
    each_level(check_selective);
}

static void test_selective_accuracy(void **state)
{
    (void)state;
    enum { N = 21, D = 16 };
    qn_kernels k;
    uint64_t rng = 19;
    assert_int_equal(qn_kernels_init(&k, "scalar", true, NULL), QN_OK);
    selective_case s = selective_open(N, D, FILL_PLAIN, &rng);
    const qn_selective_args *a = &s.args;
    double h[N][D], want[N_TOKENS][N];
    for (int32_t c = 0; c < N; c++) {
        for (int32_t i = 0; i < D; i++) h[c][i] = (double)a->state[(c / 16 * D + i) * 16 + c % 16];
        for (int32_t t = 0; t < N_TOKENS; t++) {
            float *dt = (float *)s.dt.ptr + t * a->dt_stride + c;
            *dt = fabsf(*dt) * 0.1f;
            want[t][c] = 0;
            for (int32_t i = 0; i < D; i++) {
                h[c][i] = h[c][i] * exp((double)*dt * (double)a->a[i * a->a_stride + c]) +
                          (double)a->b[t * a->bc_stride + i] * (double)a->x[t * a->x_stride + c] * (double)*dt;
                want[t][c] += h[c][i] * (double)a->c[t * a->bc_stride + i];
            }
        }
    }
    k.selective(a);
    for (int32_t t = 0; t < N_TOKENS; t++)
        for (int32_t c = 0; c < N; c++) assert_true(fabs((double)a->out[t * a->out_stride + c] - want[t][c]) < 1e-4);
    selective_close(&s);
}

/* ---- convolutions, sigmoid, softplus ---- */

static void check_conv(const qn_kernels *ref, const qn_kernels *k)
{
    uint64_t rng = 25;
    for (int32_t i = 0; i < N_SIZES * 4 * FILL_COUNT; i++) {
        const int32_t n = sizes[i % N_SIZES], n_taps = 1 + i / N_SIZES % 4;
        const fill how = (fill)(i / N_SIZES / 4);
        guarded x = random_floats(rows_floats(n_taps, n), how, &rng), w = random_floats(rows_floats(n_taps, n), FILL_PLAIN, &rng);
        guarded bias = random_floats(n, FILL_PLAIN, &rng), want = guard_new((size_t)n * 4), got = guard_new((size_t)n * 4);
        const float *rows[4];
        for (int32_t j = 0; j < n_taps; j++) rows[j] = (float *)x.ptr + (n_taps - 1 - j) * (n + GAP);
        qn_conv_args a = { rows, n_taps, w.ptr, n + GAP, i % 2 ? bias.ptr : NULL, n, i % 3, want.ptr };
        ref->conv(&a);
        for (int32_t c = 0; how == FILL_PLAIN && c < n; c++) {
            double y = i % 2 ? (double)((float *)bias.ptr)[c] : 0;
            for (int32_t j = 0; j < n_taps; j++) y += (double)rows[j][c] * (double)((float *)w.ptr)[j * (n + GAP) + c];
            if (i % 3) y /= 1 + exp(-y);
            assert_true(fabs((double)((float *)want.ptr)[c] - y) < 1e-5);
        }
        a.out = got.ptr;
        k->conv(&a);
        assert_same((float *)got.ptr, (float *)want.ptr, n, "%s conv, %d channels, %d taps, fill %d", k->level, n, n_taps, how);
        guarded *all[] = { &x, &w, &bias, &want, &got };
        for (size_t j = 0; j < 5; j++) guard_free(all[j]);
    }
}

static void test_conv(void **state)
{
    (void)state;
    each_level(check_conv);
}

static void check_units(const qn_kernels *ref, const qn_kernels *k)
{
    uint64_t rng = 35;
    for (int32_t i = 0; i < N_SIZES * FILL_COUNT; i++) {
        const int32_t n = sizes[i % N_SIZES];
        const fill how = (fill)(i / N_SIZES);
        guarded x = random_floats(n, how, &rng), want = guard_new((size_t)n * 4), got = guard_new((size_t)n * 4);
        ref->sigmoid(x.ptr, n, want.ptr);
        k->sigmoid(x.ptr, n, got.ptr);
        assert_same((float *)got.ptr, (float *)want.ptr, n, "%s sigmoid, %d values, fill %d", k->level, n, how);
        ref->softplus(x.ptr, n, want.ptr);
        k->softplus(x.ptr, n, got.ptr);
        assert_same((float *)got.ptr, (float *)want.ptr, n, "%s softplus, %d values, fill %d", k->level, n, how);
        guard_free(&x);
        guard_free(&want);
        guard_free(&got);
    }
}

static void test_units(void **state)
{
    (void)state;
    each_level(check_units);
}

static void test_units_accuracy(void **state)
{
    (void)state;
    qn_kernels k;
    double worst_sigmoid = 0, worst_softplus = 0;
    assert_int_equal(qn_kernels_init(&k, NULL, true, NULL), QN_OK);
    for (int32_t i = -80000; i <= 80000; i++) {
        const float x = (float)i / 1000;
        const double d = (double)x, sigmoid = 1 / (1 + exp(-d)), softplus = d > 0 ? d + log1p(exp(-d)) : log1p(exp(d));
        float y;
        k.sigmoid(&x, 1, &y);
        worst_sigmoid = fmax(worst_sigmoid, fabs((double)y / sigmoid - 1));
        k.softplus(&x, 1, &y);
        worst_softplus = fmax(worst_softplus, fabs((double)y / softplus - 1));
    }
    print_message("sigmoid: %.2g, softplus: %.2g, relative\n", worst_sigmoid, worst_softplus);
    assert_true(worst_sigmoid < 3e-7);
    assert_true(worst_softplus < 3e-7);
    const float edge[] = { -INFINITY, INFINITY, NAN };
    float y[3];
    k.softplus(edge, 3, y);
    assert_true(y[0] == 0 && y[1] == INFINITY && y[2] != y[2]);
    k.sigmoid(edge, 3, y);
    assert_true(y[0] == 0 && y[1] == 1 && y[2] != y[2]);
}

/* ---- timing: a token of one head of 128 x 128, of 128 x 64, and of 1024 channels ---- */

static void time_scan(void *arg)
{
    void **pair = arg;
    ((const qn_kernels *)pair[0])->scan(pair[1]);
}

static void time_selective(void *arg)
{
    void **pair = arg;
    ((const qn_kernels *)pair[0])->selective(pair[1]);
}

static void time_level(const qn_kernels *ref, const qn_kernels *k)
{
    uint64_t rng = 1;
    (void)ref;
    for (int32_t delta = 0; delta < 2; delta++) {
        scan_case c = scan_open(128, 128, delta, FILL_PLAIN, &rng);
        for (int32_t t = 0; t < N_TOKENS; t++) c.args.decay = c.args.rate, ((float *)c.rate.ptr)[t] = 0.001f;
        void *pair[] = { (void *)(uintptr_t)k, &c.args };
        print_message("%-8s scan 128 x 128, delta %d: %.2f us a token\n", k->level, delta, time_best(time_scan, pair) * 1e6 / N_TOKENS);
        scan_close(&c);
    }
    selective_case s = selective_open(1024, 16, FILL_PLAIN, &rng);
    void *pair[] = { (void *)(uintptr_t)k, &s.args };
    print_message("%-8s selective 1024 channels of 16: %.2f us a token\n", k->level, time_best(time_selective, pair) * 1e6 / N_TOKENS);
    selective_close(&s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scan_levels),     cmocka_unit_test(test_scan_accuracy), cmocka_unit_test(test_selective_levels),
        cmocka_unit_test(test_selective_accuracy), cmocka_unit_test(test_conv),       cmocka_unit_test(test_units),
        cmocka_unit_test(test_units_accuracy),
    };
    if (argc > 1 && !strcmp(argv[1], "--time")) {
        each_level(time_level);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

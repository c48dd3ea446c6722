/* Norms, activations, rope, quantising, look-ups: scalar against double precision, every level against scalar bit for bit. */
#include "kernel_test.h"

enum { N_MAX = 700 };

static const int64_t sizes[] = { 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 40, 63, 64, 65, 100, 257, 576, 699 };
enum { N_SIZES = sizeof sizes / sizeof *sizes };

/* Inputs a, b, c of n floats, each ending at a guard page, and two outputs. */
typedef struct vectors {
    guarded a, b, c, want, got;
} vectors;

static vectors vectors_open(int64_t n, fill how, uint64_t *rng)
{
    const size_t bytes = (size_t)n * 4;
    vectors v = { guard_new(bytes), guard_new(bytes), guard_new(bytes), guard_new(bytes), guard_new(bytes) };
    fill_floats(v.a.ptr, n, how, rng);
    fill_floats(v.b.ptr, n, FILL_PLAIN, rng);
    fill_floats(v.c.ptr, n, FILL_PLAIN, rng);
    return v;
}

static void vectors_close(vectors *v)
{
    guarded *all[] = { &v->a, &v->b, &v->c, &v->want, &v->got };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) guard_free(all[i]);
}

/* One operation on a table, as data: `out` is poisoned or holds `a` where the operation works in place. */
typedef void (*op_fn)(const qn_kernels *k, const vectors *v, int64_t n, float *out);

static void op_rms_norm(const qn_kernels *k, const vectors *v, int64_t n, float *out) { k->rms_norm(v->a.ptr, v->b.ptr, n, 1e-5f, out); }
static void op_rms_norm_plain(const qn_kernels *k, const vectors *v, int64_t n, float *out) { k->rms_norm(v->a.ptr, NULL, n, 1e-6f, out); }
static void op_layer_norm(const qn_kernels *k, const vectors *v, int64_t n, float *out) { k->layer_norm(v->a.ptr, v->b.ptr, v->c.ptr, n, 1e-5f, out); }
static void op_layer_norm_plain(const qn_kernels *k, const vectors *v, int64_t n, float *out) { k->layer_norm(v->a.ptr, NULL, NULL, n, 1e-5f, out); }
static void op_add(const qn_kernels *k, const vectors *v, int64_t n, float *out) { k->add(v->a.ptr, v->b.ptr, n, out); }
static void op_scale(const qn_kernels *k, const vectors *v, int64_t n, float *out) { k->scale(v->a.ptr, 0.7f, n, out); }
static void op_swiglu(const qn_kernels *k, const vectors *v, int64_t n, float *out) { k->swiglu(v->a.ptr, v->b.ptr, n, out); }
static void op_geglu(const qn_kernels *k, const vectors *v, int64_t n, float *out) { k->geglu(v->a.ptr, v->b.ptr, n, out); }
static void op_silu(const qn_kernels *k, const vectors *v, int64_t n, float *out) { k->silu(v->a.ptr, n, out); }
static void op_gelu(const qn_kernels *k, const vectors *v, int64_t n, float *out) { k->gelu(v->a.ptr, n, out); }
static void op_exp(const qn_kernels *k, const vectors *v, int64_t n, float *out) { k->exp(v->a.ptr, n, out); }

static void op_softcap(const qn_kernels *k, const vectors *v, int64_t n, float *out) { k->softcap(v->a.ptr, 2.5f, n, out); }

static void op_softmax(const qn_kernels *k, const vectors *v, int64_t n, float *out)
{
    memcpy(out, v->a.ptr, (size_t)n * 4);
    k->softmax(out, n);
}

static void rope(const qn_kernels *k, const vectors *v, int64_t n, float *out, bool neox)
{
    memcpy(out, v->a.ptr, (size_t)n * 4);
    float *angles = (float *)v->b.ptr + n % 2; /* ends at the guard page for an odd n too */
    k->rope(out + n % 2, angles, (int32_t)(n - n % 2), neox);
}
static void op_rope_neox(const qn_kernels *k, const vectors *v, int64_t n, float *out) { rope(k, v, n, out, true); }
static void op_rope_pairs(const qn_kernels *k, const vectors *v, int64_t n, float *out) { rope(k, v, n, out, false); }

static const struct {
    const char *name;
    op_fn run;
} ops[] = {
    { "rms_norm", op_rms_norm }, { "rms_norm without weights", op_rms_norm_plain }, { "layer_norm", op_layer_norm },
    { "layer_norm without weights", op_layer_norm_plain }, { "add", op_add }, { "scale", op_scale }, { "swiglu", op_swiglu },
    { "geglu", op_geglu }, { "silu", op_silu }, { "gelu", op_gelu }, { "exp", op_exp }, { "softcap", op_softcap }, { "softmax", op_softmax },
    { "rope neox", op_rope_neox }, { "rope pairs", op_rope_pairs },
};

static void check_quantize8(const qn_kernels *ref, const qn_kernels *k, const float *x, int64_t n, int32_t how)
{
    static const int8_t order[8] = QN_A8_ORDER;
    const size_t padded = (size_t)(n + 31) / 32 * 32;
    guarded q[2] = { guard_new(padded), guard_new(padded) }, d[2] = { guard_new(padded / 8), guard_new(padded / 8) },
            s[2] = { guard_new(padded / 8), guard_new(padded / 8) };
    ref->quantize_a8(x, n, q[0].ptr, d[0].ptr, s[0].ptr);
    k->quantize_a8(x, n, q[1].ptr, d[1].ptr, s[1].ptr);
    assert_memory_equal(q[0].ptr, q[1].ptr, padded);
    assert_same((float *)d[1].ptr, (float *)d[0].ptr, (int64_t)padded / 32, "%s quantize_a8 d, %lld, fill %d", k->level, (long long)n, how);
    assert_same((float *)s[1].ptr, (float *)s[0].ptr, (int64_t)padded / 32, "%s quantize_a8 s, %lld, fill %d", k->level, (long long)n, how);
    for (int64_t i = 0; i < (int64_t)padded; i++) {
        const int64_t c = i / 8 * 8 + order[i % 8];
        const float step = ((float *)d[1].ptr)[i / 32], got = step * (float)((int8_t *)q[1].ptr)[i];
        if (c >= n) assert_int_equal(((int8_t *)q[1].ptr)[i], 0);
        else if (how == FILL_PLAIN) assert_true(fabsf(x[c] - got) <= step * 0.502f);
    }
    for (int32_t i = 0; i < 2; i++) {
        guard_free(&q[i]);
        guard_free(&d[i]);
        guard_free(&s[i]);
    }
}

static void check_quantize(const qn_kernels *ref, const qn_kernels *k, const float *x, int64_t n, int32_t how)
{
    const size_t padded = (size_t)(n + 31) / 32 * 32;
    guarded q[2] = { guard_new(padded * 2), guard_new(padded * 2) }, d[2] = { guard_new(padded / 8), guard_new(padded / 8) },
            s[2] = { guard_new(padded / 8), guard_new(padded / 8) };
    ref->quantize_a16(x, n, q[0].ptr, d[0].ptr, s[0].ptr);
    k->quantize_a16(x, n, q[1].ptr, d[1].ptr, s[1].ptr);
    assert_memory_equal(q[0].ptr, q[1].ptr, padded * 2);
    assert_same((float *)d[1].ptr, (float *)d[0].ptr, (int64_t)padded / 32, "%s quantize_a16 d, %lld, fill %d", k->level, (long long)n, how);
    assert_same((float *)s[1].ptr, (float *)s[0].ptr, (int64_t)padded / 32, "%s quantize_a16 s, %lld, fill %d", k->level, (long long)n, how);
    for (int64_t i = n; i < (int64_t)padded; i++) assert_int_equal(((int16_t *)q[1].ptr)[i], 0);
    for (int64_t i = 0; how == FILL_PLAIN && i < n; i++) {
        const float step = ((float *)d[1].ptr)[i / 32];
        assert_true(fabsf(x[i] - step * (float)((int16_t *)q[1].ptr)[i]) <= step * 0.502f);
    }
    for (int32_t i = 0; i < 2; i++) {
        guard_free(&q[i]);
        guard_free(&d[i]);
        guard_free(&s[i]);
    }
}

static void check_level(const qn_kernels *ref, const qn_kernels *k)
{
    uint64_t rng = 7;
    for (int32_t i = 0; i < N_SIZES * FILL_COUNT; i++) {
        const int64_t n = sizes[i % N_SIZES];
        const fill how = (fill)(i / N_SIZES);
        vectors v = vectors_open(n, how, &rng);
        for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
            ops[o].run(ref, &v, n, v.want.ptr);
            ops[o].run(k, &v, n, v.got.ptr);
            assert_same((float *)v.got.ptr, (float *)v.want.ptr, n, "%s %s, %lld values, fill %d", k->level, ops[o].name, (long long)n, (int)how);
        }
        assert_int_equal(ref->argmax(v.a.ptr, n), k->argmax(v.a.ptr, n));
        check_quantize(ref, k, v.a.ptr, n, how);
        check_quantize8(ref, k, v.a.ptr, n, how);
        memcpy(v.got.ptr, v.a.ptr, (size_t)n * 4); /* in place */
        ref->rms_norm(v.a.ptr, v.b.ptr, n, 1e-5f, v.want.ptr);
        k->rms_norm(v.got.ptr, v.b.ptr, n, 1e-5f, v.got.ptr);
        assert_same((float *)v.got.ptr, (float *)v.want.ptr, n, "%s rms_norm in place", k->level);
        vectors_close(&v);
    }
}

static void test_levels_equal(void **state)
{
    (void)state;
    each_level(check_level);
}

/* Error in units of the last place of the true value. */
static double ulps(float got, double want)
{
    int exponent;
    frexp(want, &exponent);
    return fabs((double)got - want) / ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

static void test_exp_accuracy(void **state)
{
    (void)state;
    qn_kernels k;
    assert_int_equal(qn_kernels_init(&k, NULL, true, NULL), QN_OK);
    double worst = 0, worst_silu = 0, worst_gelu = 0;
    for (int32_t i = -103000; i <= 88700; i++) {
        const float x = (float)i / 1000;
        float y;
        k.exp(&x, 1, &y);
        worst = fmax(worst, ulps(y, exp((double)x)));
        const double v = (double)x / 4, u = 0.7978845608028654 * (v + 0.044715 * v * v * v);
        const float xf = (float)v;
        k.silu(&xf, 1, &y);
        worst_silu = fmax(worst_silu, ulps(y, (double)xf / (1 + exp(-(double)xf))));
        k.gelu(&xf, 1, &y);
        if (v > -6) worst_gelu = fmax(worst_gelu, fabs((double)y - v / (1 + exp(-2 * u))) / (fabs(v) + 1e-3));
    }
    print_message("exp: %.3f ulp, silu: %.3f ulp, gelu: %.2g relative to x\n", worst, worst_silu, worst_gelu);
    assert_true(worst < 1.0);
    assert_true(worst_silu < 3.5);
    assert_true(worst_gelu < 3e-7);
    const float edge[] = { -INFINITY, INFINITY, NAN, 0.0f, -0.0f, 88.73f, -104.0f, 1e38f, -1e38f };
    float y[9];
    k.exp(edge, 9, y);
    assert_true(y[0] == 0 && y[1] == INFINITY && y[2] != y[2] && y[3] == 1 && y[4] == 1 && y[5] == INFINITY && y[6] == 0);
    assert_true(y[7] == INFINITY && y[8] == 0);
}

/* Relatively accurate near 0 as well, and never past the cap. */
static void test_tanh_accuracy(void **state)
{
    (void)state;
    qn_kernels k;
    assert_int_equal(qn_kernels_init(&k, NULL, true, NULL), QN_OK);
    double worst = 0;
    for (int32_t i = -60000; i <= 60000; i++) {
        const float x = (float)(i < 0 ? -1 : 1) * (float)exp2(abs(i) / 1000.0 - 55);
        float y;
        k.softcap(&x, 1, 1, &y);
        worst = fmax(worst, ulps(y, tanh((double)x)));
        assert_true(fabsf(y) <= 1);
    }
    print_message("tanh: %.3f ulp\n", worst);
    assert_true(worst < 3);
    const float edge[] = { 0.0f, -0.0f, INFINITY, -INFINITY, NAN };
    float y[5];
    k.softcap(edge, 30, 5, y);
    assert_true(y[0] == 0 && !signbit(y[0]) && y[1] == 0 && signbit(y[1]) && y[2] == 30 && y[3] == -30 && y[4] != y[4]);
}

/* Norms and softmax in double precision. */
static void test_norm_accuracy(void **state)
{
    (void)state;
    qn_kernels k;
    assert_int_equal(qn_kernels_init(&k, NULL, true, NULL), QN_OK);
    float x[N_MAX], w[N_MAX], out[N_MAX];
    uint64_t rng = 3;
    fill_floats(x, N_MAX, FILL_PLAIN, &rng);
    fill_floats(w, N_MAX, FILL_PLAIN, &rng);
    double squares = 0, sum = 0, var = 0, exps = 0;
    for (int32_t i = 0; i < N_MAX; i++) {
        squares += (double)x[i] * (double)x[i];
        sum += (double)x[i];
        exps += exp((double)x[i]);
    }
    const double mean = sum / N_MAX;
    for (int32_t i = 0; i < N_MAX; i++) var += ((double)x[i] - mean) * ((double)x[i] - mean) / N_MAX;
    k.rms_norm(x, w, N_MAX, 1e-5f, out);
    for (int32_t i = 0; i < N_MAX; i++)
        assert_true(fabs((double)out[i] - (double)x[i] / sqrt(squares / N_MAX + 1e-5) * (double)w[i]) < 1e-6);
    k.layer_norm(x, w, w, N_MAX, 1e-5f, out);
    for (int32_t i = 0; i < N_MAX; i++)
        assert_true(fabs((double)out[i] - (((double)x[i] - mean) / sqrt(var + 1e-5) * (double)w[i] + (double)w[i])) < 2e-6);
    memcpy(out, x, sizeof x);
    k.softmax(out, N_MAX);
    for (int32_t i = 0; i < N_MAX; i++) assert_true(fabs((double)out[i] / (exp((double)x[i]) / exps) - 1) < 2e-6);
}

static void check_argmax(const qn_kernels *ref, const qn_kernels *k)
{
    (void)ref;
    for (int64_t n = 1; n < 80; n++) {
        guarded g = guard_new((size_t)n * 4);
        float *x = g.ptr;
        for (int64_t at = 0; at < n; at++) {
            for (int64_t i = 0; i < n; i++) x[i] = i == at || i == n - 1 ? 5 : i % 3 ? -1 : NAN; /* two equal ones: the lower */
            assert_int_equal(k->argmax(x, n), at);
        }
        for (int64_t i = 0; i < n; i++) x[i] = NAN;
        assert_int_equal(k->argmax(x, n), -1);
        x[n - 1] = -INFINITY;
        assert_int_equal(k->argmax(x, n), n - 1);
        guard_free(&g);
    }
}

static void test_argmax(void **state)
{
    (void)state;
    each_level(check_argmax);
}

/* ---- timing ---- */

typedef struct timing {
    const qn_kernels *k;
    const vectors *v;
    op_fn run;
} timing;

enum { TIME_N = 2048 };

static void time_call(void *arg)
{
    const timing *t = arg;
    t->run(t->k, t->v, TIME_N, t->v->got.ptr);
}

static void op_quantize(const qn_kernels *k, const vectors *v, int64_t n, float *out)
{
    k->quantize_a16(v->a.ptr, n, (int16_t *)out, v->want.ptr, (float *)v->want.ptr + n / 32);
}

static void op_argmax(const qn_kernels *k, const vectors *v, int64_t n, float *out)
{
    *out = (float)k->argmax(v->a.ptr, n);
}

static void time_one(const qn_kernels *k, const vectors *v, const char *name, op_fn run)
{
    timing t = { k, v, run };
    print_message("%-8s %-28s %7.2f values a ns\n", k->level, name, TIME_N / time_best(time_call, &t) / 1e9);
}

static void time_level(const qn_kernels *ref, const qn_kernels *k)
{
    uint64_t rng = 1;
    vectors v = vectors_open(TIME_N, FILL_PLAIN, &rng);
    (void)ref;
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) time_one(k, &v, ops[o].name, ops[o].run);
    time_one(k, &v, "quantize_a16", op_quantize);
    time_one(k, &v, "argmax", op_argmax);
    vectors_close(&v);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels_equal),  cmocka_unit_test(test_exp_accuracy),
        cmocka_unit_test(test_norm_accuracy), cmocka_unit_test(test_tanh_accuracy), cmocka_unit_test(test_argmax),
    };
    if (argc > 1 && !strcmp(argv[1], "--time")) {
        each_level(time_level);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

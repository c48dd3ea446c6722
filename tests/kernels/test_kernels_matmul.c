/* Products of every format at every level: against double precision, against scalar bit for bit, and however the work is cut. */
#include "matmul_check.h"

#include <strings.h>

static const char *time_filter; /* --time FORMAT */
static double read_rate;        /* bytes a second that one thread reads from memory */

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
    assert_true(k.softmax && k.softcap && k.exp && k.attention && k.argmax && k.peak);
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

/* ---- counting: `test_kernels_matmul --count LEVEL FORMAT TOKENS ROUNDS COLUMNS` ---- */

/* The product of one panel, `rounds` times: two runs under an emulator that counts instructions differ by what rounds cost. */
static int count_rounds(char **arg)
{
    qn_kernels k;
    qn_err err = { 0 };
    uint64_t rng = 1;
    const qn_fmt *fmt = qn_fmt_by_name(arg[1]);
    if (!fmt || qn_kernels_init(&k, arg[0], true, &err) != QN_OK) {
        print_error("%s\n", fmt ? err.text : "no such format");
        return 1;
    }
    const shape sh = { QN_PANEL, strtol(arg[4], NULL, 10), (int32_t)strtol(arg[2], NULL, 10), W_ZERO, FILL_PLAIN };
    problem p;
    problem_open(&p, &k, fmt, &sh, &rng);
    float *out = malloc((size_t)(sh.n_rows * sh.n_tokens) * sizeof *out);
    assert_non_null(out);
    for (long i = strtol(arg[3], NULL, 10); i > 0; i--) problem_run(&p, &k, 0, 1, 0, sh.n_tokens, out);
    free(out);
    problem_close(&p);
    return 0;
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
    if (argc == 7 && !strcmp(argv[1], "--count")) return count_rounds(argv + 2);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

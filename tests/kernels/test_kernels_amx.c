/* The AMX kernels over emulated tiles, on machines without AMX too: the same bits as scalar, and tiles used as their manual asks. */
#include "matmul_check.h"

#if defined(QUERN_AMX_EMULATED)

#include "amx_emulated.h"

void qn_init_amx(qn_kernels *k);

static qn_kernels scalar, amx;

static int open_levels(void **state)
{
    (void)state;
    assert_int_equal(qn_kernels_init(&scalar, "scalar", true, NULL), QN_OK);
    assert_int_equal(qn_kernels_init(&amx, "avx512vnni", true, NULL), QN_OK);
    qn_init_amx(&amx);
    amx.level = "amx, emulated";
    return 0;
}

static bool is_amx(const qn_fmt *fmt)
{
    return !strcmp(amx.matmul[fmt->id].isa, "amx");
}

static void test_matmul(void **state)
{
    (void)state;
    int32_t n = 0;
    for (int32_t f = 0; f < qn_fmt_count(); f++) {
        if (!qn_fmt_at(f)->decode || !is_amx(qn_fmt_at(f))) continue;
        check_format(&scalar, &amx, qn_fmt_at(f));
        n++;
    }
    assert_true(n >= 8);
}

/* Around groups of 32 tokens and tiles of 16, pieces of 8 blocks, pairs and 16 panels, and fills that hurt where tiles are in use. */
static void test_many_tokens(void **state)
{
    static const shape shapes[] = {
        { 16, 32, 8, W_RANDOM, FILL_PLAIN },   { 33, 96, 9, W_RANDOM, FILL_PLAIN },     { 48, 288, 15, W_RANDOM, FILL_PLAIN },
        { 32, 256, 31, W_EXTREME, FILL_PLAIN }, { 80, 544, 32, W_RANDOM, FILL_PLAIN },  { 31, 800, 49, W_EXTREME, FILL_SPIKE },
        { 300, 64, 64, W_RANDOM, FILL_PLAIN }, { 17, 352, 100, W_RANDOM, FILL_PLAIN },  { 18, 32, 555, W_RANDOM, FILL_PLAIN },
    };
    uint64_t rng = 20261202;
    (void)state;
    for (int32_t f = 0; f < qn_fmt_count(); f++) {
        const qn_fmt *fmt = qn_fmt_at(f);
        if (!fmt->decode || !is_amx(fmt)) continue;
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            shape sh = shapes[i];
            sh.n_cols = (sh.n_cols + fmt->block - 1) / fmt->block * fmt->block;
            check_shape(&scalar, &amx, fmt, &sh, &rng);
        }
        for (int32_t i = 0; i < W_COUNT * FILL_COUNT; i++)
            check_shape(&scalar, &amx, fmt, &(shape){ 20, 2 * fmt->block, 20 + i, (weights)(i % W_COUNT), (fill)(i / W_COUNT) }, &rng);
    }
}

/* Codes and activations at the end of their range: the sums that must still be exact. */
static void test_largest_sums(void **state)
{
    enum { N_TOKENS = 16, N_ROWS = 32 };
    uint64_t rng = 7;
    (void)state;
    for (int32_t f = 0; f < qn_fmt_count(); f++) {
        const qn_fmt *fmt = qn_fmt_at(f);
        if (!fmt->decode || !is_amx(fmt)) continue;
        for (int32_t byte = 0; byte < 256; byte += 51) {
            problem p;
            float want[N_TOKENS * N_ROWS], got[N_TOKENS * N_ROWS];
            problem_open(&p, &amx, fmt, &(shape){ N_ROWS, fmt->block, N_TOKENS, W_RANDOM, FILL_PLAIN }, &rng);
            for (size_t i = 0; i < (size_t)p.n_rows * p.row_bytes; i++) ((uint8_t *)p.rows.ptr)[i] = (uint8_t)byte;
            for (size_t i = 0; i < p.n_panels; i++)
                amx.matmul[fmt->id].pack(fmt, (uint8_t *)p.rows.ptr + i * QN_PANEL * p.row_bytes, p.row_bytes, QN_PANEL, p.n_cols,
                                         (uint8_t *)p.panels.ptr + i * p.panel_bytes);
            for (int64_t i = 0; i < N_TOKENS * p.n_padded; i++) {
                static const int16_t ends[] = { 32639, -32639, 32512, -32512, 32384 };
                ((int16_t *)p.q.ptr)[i] = (int16_t)(ends[i / p.n_padded % 5] - (i / p.n_padded > 10 ? rng_next(&rng) % 2 : 0));
            }
            amx.split_a16(p.q.ptr, N_TOKENS * p.n_padded / 32, p.planes.ptr);
            problem_run(&p, &scalar, 0, p.n_panels, 0, N_TOKENS, want);
            problem_run(&p, &amx, 0, p.n_panels, 0, N_TOKENS, got);
            assert_same(got, want, N_TOKENS * N_ROWS, "%s, bytes %d", fmt->name, byte);
            problem_close(&p);
        }
    }
}

/* Tiles are in use for many tokens, configured once where groups are full, and given back. */
static void test_tiles_are_released(void **state)
{
    enum { N_TOKENS = 96, N_ROWS = 40 };
    uint64_t rng = 3;
    problem p;
    float out[N_TOKENS * N_ROWS];
    int64_t n_configs, n_products, configs, products;
    (void)state;
    problem_open(&p, &amx, qn_fmt_by_name("Q4_0"), &(shape){ N_ROWS, 640, N_TOKENS, W_RANDOM, FILL_PLAIN }, &rng);
    amx_counts(&n_configs, &n_products);
    problem_run(&p, &amx, 0, p.n_panels, 0, N_TOKENS, out);
    amx_counts(&configs, &products);
    assert_int_equal(configs - n_configs, 1);
    assert_int_equal(products - n_products, 20 * 2 * 4 * (N_TOKENS / 32) * 2); /* blocks, pairs of panels, tiles, groups, digits */
    assert_false(amx_in_use());
    problem_run(&p, &amx, 0, p.n_panels, 0, 1, out);
    amx_counts(&configs, &n_products);
    assert_int_equal(n_products, products); /* one token goes without */
    problem_close(&p);
    assert_true(amx.peak(3) == 3 * 4 * 16 * 16 * 16);
    assert_false(amx_in_use());
}

/* Digits and bytes of the emulated instructions against sums written out. */
static void test_emulation(void **state)
{
    uint8_t config[64] = { 1 }, a[3 * 8], b[2 * 16];
    int32_t c[3][4] = { { 0 } }, got[3][4];
    uint64_t rng = 5;
    (void)state;
    config[16] = 16, config[48] = 3; /* tile 0: 3 rows of 4 results */
    config[18] = 8, config[49] = 3;
    config[20] = 16, config[50] = 2;
    for (size_t i = 0; i < sizeof a; i++) a[i] = (uint8_t)(rng_next(&rng) >> 40);
    for (size_t i = 0; i < sizeof b; i++) b[i] = (uint8_t)(rng_next(&rng) >> 40);
    for (int32_t m = 0; m < 3; m++)
        for (int32_t n = 0; n < 4; n++)
            for (int32_t k = 0; k < 8; k++) {
                const int32_t x = a[8 * m + k], y = b[k / 4 * 16 + 4 * n + k % 4];
                c[m][n] += (int8_t)x * (int8_t)y + (int8_t)x * y + x * (int8_t)y + x * y;
            }
    amx_loadconfig(config);
    amx_load(1, a, 8);
    amx_load(2, b, 16);
    for (int32_t i = 0; i < 4; i++) amx_dot_bytes(0, 1, 2, i < 2, i % 2 == 0);
    amx_store(0, got, 16);
    assert_memory_equal(got, c, sizeof c);
    const uint16_t one[4] = { 0x3f80, 0x3f80, 0x0001, 0x4000 }; /* 1, 1, a denormal, 2 */
    const uint16_t two[2][8] = { { 0x4b80, 0x3f80 }, { 0x7f00, 0x3f80 } }; /* 2^24, 1; large, 1 */
    float sum[3][4];
    amx_zero(0);
    amx_load(1, one, 0);
    amx_load(2, two, 16);
    amx_dot_bf16(0, 1, 2);
    amx_store(0, sum, 16);
    assert_true(sum[0][0] == 0x1p24f + 4); /* 2^24 + (1 + 2) to even; the denormal counts as zero */
    amx_release();
}

int main(void)
{
    const uint32_t needs = QN_CPU_AVX2 | QN_CPU_FMA | QN_CPU_F16C | QN_CPU_AVX512 | QN_CPU_VNNI | QN_CPU_BF16;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_emulation),      cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_many_tokens),    cmocka_unit_test(test_largest_sums),
        cmocka_unit_test(test_tiles_are_released),
    };
    if (needs & ~qn_cpu_flags()) {
        print_message("skipped: this CPU has no AVX-512 with VNNI and BF16\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, open_levels, NULL);
}

#else

int main(void)
{
    print_message("skipped: this build has no AMX level\n");
    return 77;
}

#endif

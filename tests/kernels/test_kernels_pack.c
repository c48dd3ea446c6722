/* Packing: what the file's rows become in a panel, at the speed that loading needs. */
#include "kernel_test.h"

#include <strings.h>

static const char *time_filter; /* --time FORMAT */

static void fill_bytes(void *at, size_t n, uint64_t *rng)
{
    for (size_t i = 0; i < n; i++) ((uint8_t *)at)[i] = (uint8_t)(rng_next(rng) >> 24);
}

/* A panel of n_rows random rows, with zeros for rows that are absent, is the panel of 16 rows of which the last are zeros; all of it is written. */
static void check_rows(const qn_matmul_row *row, const qn_fmt *fmt, int64_t n_rows, int64_t n_cols, uint64_t *rng)
{
    size_t row_bytes;
    assert_true(qn_fmt_row_bytes(fmt, n_cols, &row_bytes));
    const size_t n = row->panel_bytes(fmt, n_cols);
    guarded part = guard_new((size_t)n_rows * row_bytes), whole = guard_new(QN_PANEL * row_bytes), a = guard_new(n), b = guard_new(n);
    fill_bytes(part.ptr, (size_t)n_rows * row_bytes, rng);
    memset(whole.ptr, 0, QN_PANEL * row_bytes);
    memcpy(whole.ptr, part.ptr, (size_t)n_rows * row_bytes);
    memset(b.ptr, 0x5A, n); /* a has 0xA5 */
    row->pack(fmt, part.ptr, row_bytes, n_rows, n_cols, a.ptr);
    row->pack(fmt, whole.ptr, row_bytes, QN_PANEL, n_cols, b.ptr);
    for (size_t i = 0; i < n; i++)
        if (((uint8_t *)a.ptr)[i] != ((uint8_t *)b.ptr)[i])
            fail_msg("%s: %lld rows of %lld columns differ from 16 with zeros at byte %zu", fmt->name, (long long)n_rows, (long long)n_cols, i);
    guard_free(&part);
    guard_free(&whole);
    guard_free(&a);
    guard_free(&b);
}

static void test_rows(void **state)
{
    (void)state;
    qn_kernels k;
    uint64_t rng = 7;
    assert_int_equal(qn_kernels_init(&k, "scalar", true, NULL), QN_OK);
    for (int32_t f = 0; f < qn_fmt_count(); f++) {
        const qn_fmt *fmt = qn_fmt_at(f);
        const int64_t unit = fmt->block < 32 ? 32 : fmt->block;
        for (int64_t n_rows = 1; n_rows <= QN_PANEL; n_rows += 5)
            for (int64_t blocks = 1; blocks <= 5; blocks++) check_rows(&k.matmul[fmt->id], fmt, n_rows, unit * blocks, &rng);
    }
}

/* Memory is promised to stay near the file's size. */
static void test_sizes(void **state)
{
    (void)state;
    qn_kernels k;
    assert_int_equal(qn_kernels_init(&k, "scalar", true, NULL), QN_OK);
    for (int32_t f = 0; f < qn_fmt_count(); f++) {
        const qn_fmt *fmt = qn_fmt_at(f);
        size_t row_bytes;
        assert_true(qn_fmt_row_bytes(fmt, 4096, &row_bytes));
        assert_in_range(k.matmul[fmt->id].panel_bytes(fmt, 4096) * 100, 0, QN_PANEL * row_bytes * 103);
    }
}

/* ---- timing ---- */

typedef struct timing {
    const qn_matmul_row *row;
    const qn_fmt *fmt;
    size_t row_bytes, panel_bytes, n_panels, at;
    int64_t n_cols;
    guarded rows, panels;
    float *out;
} timing;

static void time_pack(void *arg)
{
    timing *t = arg;
    const size_t i = t->at++ % t->n_panels;
    t->row->pack(t->fmt, (uint8_t *)t->rows.ptr + i * QN_PANEL * t->row_bytes, t->row_bytes, QN_PANEL, t->n_cols,
                 (uint8_t *)t->panels.ptr + i * t->panel_bytes);
}

static void time_decode(void *arg)
{
    timing *t = arg;
    t->fmt->decode(t->rows.ptr, t->n_cols / t->fmt->block, t->out);
}

/* Rows of 2048 columns from memory into memory; decoding of one row in the cache. */
static void time_all(void)
{
    enum { N_COLS = 2048, N_BYTES = 64 << 20 };
    qn_kernels k;
    uint64_t rng = 7;
    assert_int_equal(qn_kernels_init(&k, "scalar", true, NULL), QN_OK);
    print_message("one thread, GB/s of the file's bytes\n");
    for (int32_t f = 0; f < qn_fmt_count(); f++) {
        timing t = { .fmt = qn_fmt_at(f), .row = &k.matmul[qn_fmt_at(f)->id], .n_cols = N_COLS };
        if (time_filter && strcasecmp(time_filter, t.fmt->name)) continue;
        assert_true(qn_fmt_row_bytes(t.fmt, N_COLS, &t.row_bytes));
        t.panel_bytes = t.row->panel_bytes(t.fmt, N_COLS);
        t.n_panels = N_BYTES / (QN_PANEL * t.row_bytes);
        t.rows = guard_new(t.n_panels * QN_PANEL * t.row_bytes);
        t.panels = guard_new(t.n_panels * t.panel_bytes);
        t.out = malloc(N_COLS * sizeof *t.out);
        assert_non_null(t.out);
        fill_bytes(t.rows.ptr, QN_PANEL * t.row_bytes, &rng);
        const double pack = time_best(time_pack, &t), decode = time_best(time_decode, &t);
        print_message("%-8s packing %6.2f, decoding %6.2f\n", t.fmt->name, (double)(QN_PANEL * t.row_bytes) / pack / 1e9,
                      (double)t.row_bytes / decode / 1e9);
        guard_free(&t.rows);
        guard_free(&t.panels);
        free(t.out);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_sizes),
    };
    if (argc > 1 && !strcmp(argv[1], "--time")) {
        time_filter = argc > 2 ? argv[2] : NULL;
        time_all();
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

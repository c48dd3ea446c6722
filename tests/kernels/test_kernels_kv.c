/* The formats of the KV cache: every level against scalar byte for byte, and what is read back against what was written. */
#include "kernel_test.h"

/* Calls fn for every cache format of the table. */
static void each_format(const qn_kernels *ref, const qn_kernels *k,
                        void (*fn)(const qn_fmt *fmt, const qn_kv_row *ref, const qn_kv_row *row, const char *level))
{
    int32_t n = 0;
    for (int32_t i = 0; i < qn_fmt_count(); i++) {
        const int32_t id = qn_fmt_at(i)->id;
        assert_int_equal(k->kv[id].kind, ref->kv[id].kind);
        if (k->kv[id].kind == QN_KV_ABSENT) continue;
        fn(qn_fmt_at(i), &ref->kv[id], &k->kv[id], k->level);
        n++;
    }
    assert_int_equal(n, 5); /* F32, F16, BF16, Q8_0, Q4_0 */
}

/* A block with all positions written, and a copy of it written by the reference. */
typedef struct pair {
    guarded want, got;
    size_t bytes;
} pair;

static pair pair_new(const qn_kv_row *row, int32_t dim)
{
    const size_t bytes = qn_kv_block_bytes(row, dim);
    return (pair){ guard_new(bytes), guard_new(bytes), bytes };
}

static void pair_free(pair *p)
{
    guard_free(&p->want);
    guard_free(&p->got);
}

/* How far a value may be from what is kept of it. */
static double error_bound(const qn_kv_row *row, double amax, double x)
{
    switch (row->bits) {
    case 32: return 0;
    case 16: return row->kind == QN_KV_F16 ? fabs(x) * 0x1p-11 + 0x1p-25 : fabs(x) * 0x1p-8 + 0x1p-134;
    case 8: return amax / 127 * 0.5 * 1.01 + 0x1p-24 * 127;
    default: return amax / 8 * 1.01 + 0x1p-24 * 8; /* the side without the extreme ends at 7/8 of it */
    }
}

static void check_values(const qn_fmt *fmt, const qn_kv_row *row, int32_t dim, const float *x, const float *kept, int32_t first, int32_t step)
{
    for (int32_t d = 0; d < dim; d++) {
        double amax = 0;
        const int32_t from = row->group ? d / row->group * row->group : 0, to = row->group && from + row->group < dim ? from + row->group : dim;
        for (int32_t i = from; i < to; i++) amax = fabs((double)x[i]) > amax ? fabs((double)x[i]) : amax;
        const double got = (double)kept[first + d * step];
        if (!(fabs(got - (double)x[d]) <= error_bound(row, amax, (double)x[d])))
            fail_msg("%s, %d dimensions: [%d] %g is kept as %g", fmt->name, dim, d, (double)x[d], got);
    }
}

/* Numbers that every format has. */
static bool readable(fill how)
{
    return how == FILL_PLAIN || how == FILL_ZERO || how == FILL_TINY;
}

static void check_format_dim(const qn_fmt *fmt, const qn_kv_row *ref, const qn_kv_row *row, const char *level, int32_t dim, fill how, uint64_t *rng)
{
    pair k = pair_new(row, dim), v = pair_new(row, dim);
    guarded x = guard_new((size_t)dim * 4 * 16), want = guard_new((size_t)dim * 4 * 16), got = guard_new((size_t)dim * 4 * 16);
    float *in = x.ptr;
    for (int32_t slot = 15; slot >= 0; slot--) { /* the last row ends at the guard page */
        fill_floats(in + slot * dim, dim, how, rng);
        qn_kv_store_k(ref, in + slot * dim, dim, slot, k.want.ptr);
        qn_kv_store_k(row, in + slot * dim, dim, slot, k.got.ptr);
        qn_kv_store_v(ref, in + slot * dim, dim, slot, v.want.ptr);
        qn_kv_store_v(row, in + slot * dim, dim, slot, v.got.ptr);
    }
    if (memcmp(k.want.ptr, k.got.ptr, k.bytes) || memcmp(v.want.ptr, v.got.ptr, v.bytes))
        fail_msg("%s, %s, %d dimensions: other bytes (fill %d)", level, fmt->name, dim, (int)how);
    ref->load_k(k.want.ptr, dim, want.ptr);
    row->load_k(k.got.ptr, dim, got.ptr);
    assert_same((float *)got.ptr, (float *)want.ptr, dim * 16, "%s, %s: keys of %d", level, fmt->name, dim);
    for (int32_t slot = 0; readable(how) && slot < 16; slot++) check_values(fmt, row, dim, in + slot * dim, got.ptr, slot, 16);
    memset(got.ptr, 0xA5, (size_t)dim * 4 * 16);
    ref->load_v(v.want.ptr, dim, want.ptr);
    row->load_v(v.got.ptr, dim, got.ptr);
    assert_same((float *)got.ptr, (float *)want.ptr, dim * 16, "%s, %s: values of %d", level, fmt->name, dim);
    for (int32_t slot = 0; readable(how) && slot < 16; slot++) check_values(fmt, row, dim, in + slot * dim, got.ptr, slot * dim, 1);
    pair_free(&k);
    pair_free(&v);
    guard_free(&x);
    guard_free(&want);
    guard_free(&got);
}

static void check_format(const qn_fmt *fmt, const qn_kv_row *ref, const qn_kv_row *row, const char *level)
{
    static const int32_t dims[] = { 8, 16, 24, 32, 40, 56, 64, 80, 96, 104, 128, 136, 256, 576, 1024 };
    uint64_t rng = 11;
    assert_int_equal(row->bits, ref->bits);
    assert_int_equal(row->group, ref->group);
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        for (int32_t how = 0; how < FILL_COUNT; how++) check_format_dim(fmt, ref, row, level, dims[i], (fill)how, &rng);
}

static void check_level(const qn_kernels *ref, const qn_kernels *k)
{
    each_format(ref, k, check_format);
}

static void test_store_and_load(void **state)
{
    (void)state;
    each_level(check_level);
}

/* Any bits in a block are read without a fault and to the same values: blocks come from files too. */
static void check_garbage(const qn_fmt *fmt, const qn_kv_row *ref, const qn_kv_row *row, const char *level)
{
    uint64_t rng = 3;
    for (int32_t dim = 8; dim <= 136; dim += 8) {
        pair p = pair_new(row, dim);
        guarded want = guard_new((size_t)dim * 4 * 16), got = guard_new((size_t)dim * 4 * 16);
        for (size_t i = 0; i < p.bytes; i++) ((uint8_t *)p.want.ptr)[i] = (uint8_t)(rng_next(&rng) >> 40);
        memcpy(p.got.ptr, p.want.ptr, p.bytes);
        ref->load_k(p.want.ptr, dim, want.ptr);
        row->load_k(p.got.ptr, dim, got.ptr);
        assert_same((float *)got.ptr, (float *)want.ptr, dim * 16, "%s, %s: keys of %d", level, fmt->name, dim);
        ref->load_v(p.want.ptr, dim, want.ptr);
        row->load_v(p.got.ptr, dim, got.ptr);
        assert_same((float *)got.ptr, (float *)want.ptr, dim * 16, "%s, %s: values of %d", level, fmt->name, dim);
        pair_free(&p);
        guard_free(&want);
        guard_free(&got);
    }
}

static void check_level_garbage(const qn_kernels *ref, const qn_kernels *k)
{
    each_format(ref, k, check_garbage);
}

static void test_garbage(void **state)
{
    (void)state;
    each_level(check_level_garbage);
}

/* 8.5 and 4.5 bits an element where dimensions are a multiple of 64, and never more than two cache lines above. */
static void test_bytes(void **state)
{
    (void)state;
    qn_kernels k;
    assert_int_equal(qn_kernels_init(&k, "scalar", true, NULL), QN_OK);
    for (int32_t i = 0; i < qn_fmt_count(); i++) {
        const qn_kv_row *row = &k.kv[qn_fmt_at(i)->id];
        if (row->kind == QN_KV_ABSENT) continue;
        const int32_t half_bits = 2 * row->bits + (row->group ? 1 : 0);
        for (int32_t dim = 64; dim <= QN_KV_MAX_DIM; dim += 64) assert_int_equal(qn_kv_block_bytes(row, dim), dim * half_bits);
        for (int32_t dim = 8; dim <= QN_KV_MAX_DIM; dim += 8) {
            const size_t bytes = qn_kv_block_bytes(row, dim);
            assert_int_equal(bytes % 64, 0);
            assert_true(bytes >= (size_t)(dim * half_bits) && bytes <= (size_t)(dim * half_bits) + 2 * 64);
        }
    }
}

/* A group with a NaN, an Inf or a value beyond the scales reads as NaN; its neighbours are untouched. */
static void check_not_finite(const qn_fmt *fmt, const qn_kv_row *ref, const qn_kv_row *row, const char *level)
{
    enum { DIM = 96 };
    static const float bad[] = { NAN, INFINITY, -INFINITY, 3e38f };
    (void)ref;
    (void)level;
    for (size_t i = 0; row->group && i < sizeof bad / sizeof *bad; i++) {
        pair p = pair_new(row, DIM);
        guarded out = guard_new(DIM * 4 * 16);
        const float *kept = out.ptr;
        float x[DIM];
        memset(p.got.ptr, 0, p.bytes);
        for (int32_t d = 0; d < DIM; d++) x[d] = (float)d;
        x[40] = bad[i];
        qn_kv_store_v(row, x, DIM, 5, p.got.ptr);
        row->load_v(p.got.ptr, DIM, out.ptr);
        for (int32_t d = 0; d < DIM; d++)
            if ((d / 32 == 1) != (kept[5 * DIM + d] != kept[5 * DIM + d])) fail_msg("%s: [%d] is %g", fmt->name, d, (double)kept[5 * DIM + d]);
        pair_free(&p);
        guard_free(&out);
    }
}

static void check_level_not_finite(const qn_kernels *ref, const qn_kernels *k)
{
    each_format(ref, k, check_not_finite);
}

static void test_not_finite(void **state)
{
    (void)state;
    each_level(check_level_not_finite);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_store_and_load), cmocka_unit_test(test_garbage), cmocka_unit_test(test_bytes),
                                        cmocka_unit_test(test_not_finite) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

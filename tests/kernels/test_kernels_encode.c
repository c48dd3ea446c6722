/* Every level encodes to the bytes of the format's own encoder: all formats, all numbers of blocks around a tile, weights that hurt. */
#include "kernel_test.h"

enum { MOST = 35 };

static void check(const qn_kernels *k, const qn_fmt *fmt, fill how, bool with_importance, int32_t n_blocks, uint64_t *rng)
{
    const size_t n = (size_t)n_blocks * (size_t)fmt->block, n_bytes = (size_t)n_blocks * (size_t)fmt->bytes;
    guarded w = guard_new(n * sizeof(float)), importance = guard_new(n * sizeof(float)), got = guard_new(n_bytes), want = guard_new(n_bytes);
    fill_floats(w.ptr, (int64_t)n, how, rng);
    fill_floats(importance.ptr, (int64_t)n, with_importance ? how : FILL_PLAIN, rng);
    float *imp = importance.ptr;
    for (size_t i = 0; i < n; i++) imp[i] *= imp[i];
    fmt->encode(w.ptr, with_importance ? imp : NULL, n_blocks, want.ptr);
    k->encode(fmt, w.ptr, with_importance ? imp : NULL, n_blocks, got.ptr);
    if (memcmp(got.ptr, want.ptr, n_bytes))
        fail_msg("%s at %s: %d blocks, fill %d, importance %d: other bytes than the format's own", fmt->name, k->level, n_blocks, how, with_importance);
    guard_free(&w);
    guard_free(&importance);
    guard_free(&got);
    guard_free(&want);
}

static void test_levels(void **state)
{
    (void)state;
    static const int32_t counts[] = { 1, 3, 8, 15, 16, 17, MOST };
    uint64_t rng = 9;
    for (int32_t level = 0; level < qn_isa_count(); level++) {
        qn_kernels k;
        if (qn_kernels_init(&k, qn_isa_at(level)->name, false, NULL) != QN_OK) continue;
        for (int32_t i = 0; i < qn_fmt_count(); i++)
            for (int how = 0; how < FILL_COUNT && qn_fmt_at(i)->encode; how++) {
                const int32_t n = counts[(how + i) % (int32_t)(sizeof counts / sizeof *counts)];
                check(&k, qn_fmt_at(i), (fill)how, false, n, &rng);
                check(&k, qn_fmt_at(i), (fill)how, true, n, &rng);
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_levels) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Shared by the kernel tests: buffers that end at a page nobody may touch, fills, comparison of bits, levels. */
#ifndef KERNEL_TEST_H
#define KERNEL_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "simd/kernels.h"
#include "src/base/half.h"

/* Bytes whose last one is followed by an unreadable page; filled with 0xA5 to show what nobody wrote. */
typedef struct guarded {
    void *ptr;
    void *map;
    size_t map_bytes;
} guarded;

static inline guarded guard_new(size_t n)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (n + page - 1) / page * page;
    guarded g = { NULL, NULL, body + page };
    g.map = mmap(NULL, g.map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(g.map != MAP_FAILED);
    memset(g.map, 0xA5, body);
    assert_int_equal(mprotect((char *)g.map + body, page, PROT_NONE), 0);
    g.ptr = (char *)g.map + body - n;
    return g;
}

static inline void guard_free(guarded *g)
{
    munmap(g->map, g->map_bytes);
    g->ptr = g->map = NULL;
}

/* xorshift64*: the same numbers everywhere */
static inline uint64_t rng_next(uint64_t *s)
{
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    return *s * 0x2545F4914F6CDD1Dull;
}

/* [-1, 1) */
static inline float rng_unit(uint64_t *s)
{
    return (float)(rng_next(s) >> 40) * 0x1p-23f - 1.0f;
}

/* Floats that hurt. */
typedef enum fill { FILL_PLAIN, FILL_ZERO, FILL_SPIKE, FILL_TINY, FILL_NAN, FILL_INF, FILL_BITS, FILL_COUNT } fill;

static inline void fill_floats(float *x, int64_t n, fill how, uint64_t *rng)
{
    for (int64_t i = 0; i < n; i++) {
        x[i] = rng_unit(rng) * 3;
        if (how == FILL_ZERO) x[i] = i % 2 ? 0.0f : -0.0f;
        if (how == FILL_TINY) x[i] *= 1e-38f;
        if (how == FILL_BITS) x[i] = qn_f32_from_bits((uint32_t)rng_next(rng));
    }
    if (!n) return;
    const int64_t at = (int64_t)(rng_next(rng) % (uint64_t)n);
    if (how == FILL_SPIKE) x[at] = -1e30f;
    if (how == FILL_NAN) x[at] = NAN;
    if (how == FILL_INF) x[at] = -INFINITY;
}

/* Same bits; any NaN equals any NaN. */
static inline bool same_floats(const float *a, const float *b, int64_t n, int64_t *at)
{
    for (int64_t i = 0; i < n; i++) {
        if (memcmp(a + i, b + i, 4) && !(a[i] != a[i] && b[i] != b[i])) {
            *at = i;
            return false;
        }
    }
    return true;
}

#define assert_same(a, b, n, ...)                                                                                   \
    do {                                                                                                            \
        int64_t at_ = 0;                                                                                            \
        if (!same_floats(a, b, n, &at_)) {                                                                          \
            print_error(__VA_ARGS__);                                                                               \
            fail_msg(": [%lld] %a is not %a", (long long)at_, (double)(a)[at_], (double)(b)[at_]);                  \
        }                                                                                                           \
    } while (0)

/* Calls fn for every level that this CPU runs, scalar included, beside scalar. */
static inline void each_level(void (*fn)(const qn_kernels *ref, const qn_kernels *k))
{
    qn_kernels ref, k;
    qn_err err;
    assert_int_equal(qn_kernels_init(&ref, "scalar", true, &err), QN_OK);
    for (int32_t i = 0; i < qn_isa_count(); i++) {
        const qn_isa *isa = qn_isa_at(i);
        if (isa->needs & ~qn_cpu_flags()) continue;
        assert_int_equal(qn_kernels_init(&k, isa->name, true, &err), QN_OK);
        fn(&ref, &k);
    }
}

/* ---- timing: `test_kernels_... --time` ---- */

static inline double clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Best seconds of a call within 0.3 s, five calls at least. Calls of a millisecond find a moment in which a busy machine leaves them alone. */
static inline double time_best(void (*fn)(void *arg), void *arg)
{
    double best = 1e9;
    const double begin = clock_now();
    fn(arg);
    for (int32_t n = 0; n < 5 || clock_now() - begin < 0.3; n++) {
        const double start = clock_now();
        fn(arg);
        const double taken = clock_now() - start;
        if (taken < best) best = taken;
    }
    return best;
}

typedef struct peak_timing {
    const qn_kernels *k;
    int64_t n;
} peak_timing;

static inline void peak_call(void *arg)
{
    peak_timing *t = arg;
    t->n = t->k->peak(100000);
}

/* Multiply-adds of 16-bit activations a second that the level reaches on registers. */
static inline double peak_rate(const qn_kernels *k)
{
    peak_timing t = { .k = k };
    const double s = time_best(peak_call, &t);
    return (double)t.n / s;
}

#endif

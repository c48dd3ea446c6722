/* The pool: every thread runs once, the barrier holds, idle threads sleep, failures are statuses. */
#include "src/base/pool.h"
#include "tests/common/fault.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { MAX_THREADS = 8 };

static qn_pool *open_pool(int32_t n)
{
    qn_pool *p;
    qn_err err;
    assert_int_equal(qn_pool_open(&p, n, &err), QN_OK);
    assert_int_equal(qn_pool_n_threads(p), n);
    return p;
}

/* ---- runs ---- */

typedef struct sums {
    int64_t n;
    int64_t part[MAX_THREADS]; /* plain memory: the pool must order it */
    int32_t calls[MAX_THREADS];
} sums;

static void add_part(void *arg, int32_t i, int32_t n_threads)
{
    sums *s = arg;
    int64_t begin, end;
    qn_split(s->n, i, n_threads, &begin, &end);
    s->part[i] = 0;
    for (int64_t k = begin; k < end; k++) s->part[i] += k;
    s->calls[i]++;
}

static void test_run_once_each(void **state)
{
    (void)state;
    for (int32_t n = 1; n <= MAX_THREADS; n++) {
        qn_pool *p = open_pool(n);
        sums s = { 0 };
        for (int r = 1; r <= 200; r++) {
            s.n = 997 + r;
            qn_pool_run(p, add_part, &s);
            int64_t total = 0;
            for (int32_t i = 0; i < n; i++) {
                assert_int_equal(s.calls[i], r);
                total += s.part[i];
            }
            assert_int_equal(total, s.n * (s.n - 1) / 2);
        }
        qn_pool_close(&p);
        assert_null(p);
    }
}

static void test_split(void **state)
{
    (void)state;
    for (int64_t n = 0; n < 40; n++)
        for (int32_t t = 1; t <= 9; t++) {
            int64_t next = 0;
            for (int32_t i = 0; i < t; i++) {
                int64_t b, e;
                qn_split(n, i, t, &b, &e);
                assert_int_equal(b, next);
                assert_true(e - b == n / t || e - b == n / t + 1);
                next = e;
            }
            assert_int_equal(next, n);
        }
}

/* ---- barrier ---- */

typedef struct relay {
    qn_pool *pool;
    int32_t n_rounds;
    bool naps;
    int32_t cell[2][MAX_THREADS]; /* plain memory, written by one thread and read by all behind the barrier */
    _Atomic int32_t wrong;
} relay;

static void pass_on(void *arg, int32_t i, int32_t n)
{
    relay *r = arg;
    for (int32_t k = 0; k < r->n_rounds; k++) {
        if (r->naps && (k + i) % 16 == 0) usleep(200); /* longer than anybody spins */
        r->cell[k & 1][i] = k * 100 + i;
        qn_pool_barrier(r->pool, i);
        for (int32_t j = 0; j < n; j++)
            if (r->cell[k & 1][j] != k * 100 + j) atomic_fetch_add(&r->wrong, 1);
        /* the other half of `cell` is next, and this one is written again only behind another barrier */
    }
}

static void test_barrier(void **state)
{
    (void)state;
    for (int32_t n = 1; n <= MAX_THREADS; n++)
        for (int naps = 0; naps < 2; naps++) {
            relay r = { .pool = open_pool(n), .n_rounds = naps ? 100 : 2000, .naps = naps };
            for (int k = 0; k < 3; k++) qn_pool_run(r.pool, pass_on, &r);
            assert_int_equal(r.wrong, 0);
            qn_pool_close(&r.pool);
        }
}

static void count_barriers(void *arg, int32_t i, int32_t n)
{
    relay *r = arg;
    (void)n;
    for (int32_t k = 0; k < r->n_rounds; k++) qn_pool_barrier(r->pool, i);
}

/* With four times the threads of CPUs a barrier costs context switches and no more: well under a scheduler's time slice per
 * thread. */
static void test_barrier_cost(void **state)
{
    (void)state;
    for (int32_t n = 2; n <= MAX_THREADS; n *= 2) {
        relay r = { .pool = open_pool(n), .n_rounds = n > 2 ? 300 : 3000 };
        double best = 1e9;
        for (int k = 0; k < 10; k++) {
            const double t = qn_now();
            qn_pool_run(r.pool, count_barriers, &r);
            const double s = (qn_now() - t) / r.n_rounds;
            if (s < best) best = s;
        }
        print_message("%d threads: %.0f ns a barrier\n", (int)n, best * 1e9);
        assert_true(best < 20e-3);
        qn_pool_close(&r.pool);
    }
}

/* ---- idling, life ---- */

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void test_idle_costs_nothing(void **state)
{
    (void)state;
    qn_pool *p = open_pool(4);
    sums s = { .n = 1000 };
    qn_pool_run(p, add_part, &s);
    const double before = cpu_seconds();
    sleep(1);
    assert_true(cpu_seconds() - before < 0.01);
    qn_pool_run(p, add_part, &s); /* and they wake up again */
    assert_int_equal(s.calls[3], 2);
    qn_pool_close(&p);
}

static void test_many_lives(void **state)
{
    (void)state;
    for (int i = 0; i < 300; i++) {
        qn_pool *p = open_pool(1 + i % 5);
        sums s = { .n = 100 };
        if (i & 1) qn_pool_run(p, add_part, &s); /* also closed without ever having run */
        qn_pool_close(&p);
    }
    qn_pool *none = NULL;
    qn_pool_close(&none);
}

static void test_two_pools(void **state)
{
    (void)state;
    qn_pool *a = open_pool(2), *b = open_pool(3);
    sums s = { .n = 100 }, t = { .n = 100 };
    for (int i = 0; i < 100; i++) {
        qn_pool_run(a, add_part, &s);
        qn_pool_run(b, add_part, &t);
    }
    qn_pool_close(&a);
    qn_pool_run(b, add_part, &t);
    assert_int_equal(s.calls[1], 100);
    assert_int_equal(t.calls[2], 101);
    qn_pool_close(&b);
}

/* ---- affinity ---- */

typedef struct places {
    cpu_set_t mask[MAX_THREADS];
} places;

static void note_mask(void *arg, int32_t i, int32_t n)
{
    places *p = arg;
    (void)n;
    sched_getaffinity(0, sizeof p->mask[i], &p->mask[i]);
}

static void test_affinity(void **state)
{
    (void)state;
    cpu_set_t before, after, both;
    sched_getaffinity(0, sizeof before, &before);
    const int32_t n_default = qn_threads_default();
    for (int32_t n = 1; n <= MAX_THREADS; n++) {
        places p;
        qn_pool *pool = open_pool(n);
        for (int k = 0; k < 50; k++) qn_pool_run(pool, note_mask, &p);
        for (int32_t i = 0; i < n; i++) { /* never outside the mask */
            CPU_AND(&both, &p.mask[i], &before);
            assert_true(CPU_EQUAL(&both, &p.mask[i]));
            if (n > CPU_COUNT(&before)) assert_true(CPU_EQUAL(&p.mask[i], &before)); /* too many to pin */
            if (n == n_default && n == CPU_COUNT(&before) && i) assert_int_equal(CPU_COUNT(&p.mask[i]), 1);
        }
        sched_getaffinity(0, sizeof after, &after);
        assert_true(CPU_EQUAL(&after, &before)); /* the caller's is the caller's */
        qn_pool_close(&pool);
    }
}

static void test_narrow_mask(void **state)
{
    (void)state;
    cpu_set_t before, one;
    sched_getaffinity(0, sizeof before, &before);
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &before)) { /* the last one */
            CPU_ZERO(&one);
            CPU_SET(i, &one);
        }
    sched_setaffinity(0, sizeof one, &one);
    places p;
    qn_pool *pool = open_pool(3);
    qn_pool_run(pool, note_mask, &p);
    for (int i = 0; i < 3; i++) assert_true(CPU_EQUAL(&p.mask[i], &one));
    qn_pool_close(&pool);
    assert_int_equal(qn_pool_open(&pool, 0, NULL), QN_OK);
    assert_int_equal(qn_pool_n_threads(pool), 1);
    qn_pool_close(&pool);
    sched_setaffinity(0, sizeof before, &before);
}

/* ---- failures ---- */

static void test_bad_count(void **state)
{
    (void)state;
    qn_pool *p = NULL;
    qn_err err;
    assert_int_equal(qn_pool_open(&p, -1, &err), QN_ERR_ARG);
    assert_null(p);
    assert_int_equal(qn_pool_open(&p, QN_POOL_MAX + 1, &err), QN_ERR_ARG);
    assert_non_null(strstr(err.text, "513"));
    assert_null(p);
}

/* The n-th allocation or thread fails: a status, nothing left behind, and the next one opens. */
static void test_failures(void **state)
{
    (void)state;
    for (long n = 1;; n++) {
        qn_pool *p = NULL;
        qn_err err;
        test_fail_alloc_at(n);
        const qn_status st = qn_pool_open(&p, 5, &err);
        const bool failed = test_alloc_has_failed();
        test_fail_alloc_at(0);
        if (st == QN_OK) { /* only where the affinity list failed, which has a substitute */
            sums s = { .n = 10 };
            qn_pool_run(p, add_part, &s);
            assert_int_equal(s.calls[4], 1);
            qn_pool_close(&p);
        } else {
            assert_true(failed);
            assert_int_equal(st, QN_ERR_NOMEM);
            assert_null(p);
        }
        if (!failed) {
            assert_true(n > 8); /* three blocks of memory, lists, four threads */
            break;
        }
    }
}

/* In a child with little address space left: some of 512 stacks of 1 MiB cannot be mapped. */
static int open_in_small_space(void)
{
    const struct rlimit small = { 200u << 20, 200u << 20 };
    qn_pool *p = NULL;
    qn_err err;
    if (setrlimit(RLIMIT_AS, &small)) return 1;
    if (qn_pool_open(&p, 512, &err) != QN_ERR_NOMEM || p) return 2;
    if (!strstr(err.text, "of 512")) return 3;
    if (qn_pool_open(&p, 3, &err) != QN_OK) return 4; /* what was started has been ended and given back */
    sums s = { .n = 10 };
    qn_pool_run(p, add_part, &s);
    qn_pool_close(&p);
    return s.calls[2] == 1 ? 0 : 5;
}

static void test_thread_refused(void **state)
{
    (void)state;
    if (SANITIZED) skip(); /* sanitizers need their address space */
    const char *emulated = getenv("QUERN_EMULATED");
    if (emulated && *emulated) skip(); /* qemu gives its guest no limit of address space */
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) _exit(open_in_small_space());
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_once_each),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_barrier),
        cmocka_unit_test(test_barrier_cost),
        cmocka_unit_test(test_idle_costs_nothing),
        cmocka_unit_test(test_many_lives),
        cmocka_unit_test(test_two_pools),
        cmocka_unit_test(test_affinity),
        cmocka_unit_test(test_narrow_mask),
        cmocka_unit_test(test_bad_count),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_thread_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

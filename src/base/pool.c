#include "src/base/pool.h"

#include "src/base/mem.h"
#include "src/base/topology.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/*
 * Waiting. A signal is one word: a count that rises by 2, and in bit 0 whether somebody sleeps on it. The waiter spins, then sets
 * the bit with a compare-and-swap and sleeps; the signaller exchanges the word and wakes only if the old one had the bit. One
 * atomic operation a signal, no system call while everybody spins, and no wake-up can be lost.
 *
 * Barrier. Dissemination: in round k thread i signals thread i + 2^k and waits for thread i - 2^k, ceil(log2 n) rounds. Two
 * threads need one round with each reading the other's line, the least there is; at 64 threads it is 6 rounds where one shared
 * counter would be 64 transfers of one line. A partner can be one barrier ahead, never two, so "at least" is the right
 * comparison.
 */

/* How long to spin before sleeping. Waking a sleeper costs 5 to 50 us, so waiting about that long loses at most a factor of two.
 * Between runs the caller samples a token, 50 to 200 us. With more threads than CPUs nobody spins: the one waited for needs the
 * CPU. */
enum { SPIN_BARRIER_NS = 50 * 1000, SPIN_IDLE_NS = 100 * 1000 };

enum { ASLEEP = 1, STEP = 2, LINE = 128 /* pairs of 64-byte lines are fetched together */, STACK_BYTES = 1 << 20 };

typedef struct qn_signal {
    _Alignas(LINE) _Atomic uint32_t word;
} qn_signal;

typedef struct qn_worker {
    _Alignas(LINE) qn_pool *pool;
    int32_t i_thread;
    int32_t cpu;    /* pinned to; -1: not pinned */
    uint32_t count; /* barriers passed, times STEP; touched by its own thread alone */
    pthread_t id;
} qn_worker;

struct qn_pool {
    qn_signal go;       /* a run, or the end when fn is NULL */
    qn_signal *arrived; /* [n_threads][n_rounds] */
    qn_worker *workers; /* [n_threads]; 0 is the caller */
    qn_pool_fn fn;
    void *arg;
    int32_t n_threads, n_rounds, n_started;
    int64_t spin_barrier_ns, spin_idle_ns;
    int32_t home; /* CPU that no worker is pinned to, for the caller; -1: nobody is pinned */
#ifndef __linux__
    pthread_mutex_t lock;
    pthread_cond_t changed;
#endif
};

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

double qn_now(void)
{
    return (double)now_ns() * 1e-9;
}

/* ---- signals ---- */

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* `yield` does nothing on most cores */
#endif
}

/* Sleep unless the word is no longer `seen`. May return early. */
static void sleep_on(qn_pool *p, _Atomic uint32_t *word, uint32_t seen)
{
#ifdef __linux__
    (void)p;
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
#else
    pthread_mutex_lock(&p->lock);
    if (atomic_load_explicit(word, memory_order_relaxed) == seen) pthread_cond_wait(&p->changed, &p->lock);
    pthread_mutex_unlock(&p->lock);
#endif
}

static void wake_all(qn_pool *p, _Atomic uint32_t *word)
{
#ifdef __linux__
    (void)p;
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
#else
    (void)word;
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
#endif
}

static inline bool has_reached(uint32_t word, uint32_t count)
{
    return (int32_t)((word & ~(uint32_t)ASLEEP) - count) >= 0; /* the count may wrap around */
}

static void signal_set(qn_pool *p, qn_signal *s, uint32_t count)
{
    const uint32_t old = atomic_exchange_explicit(&s->word, count, memory_order_acq_rel);
    if (old & ASLEEP) wake_all(p, &s->word);
}

static void signal_wait(qn_pool *p, qn_signal *s, uint32_t count, int64_t spin_ns)
{
    uint32_t v = atomic_load_explicit(&s->word, memory_order_acquire);
    for (int64_t end = 0; spin_ns > 0 && !has_reached(v, count);) {
        for (int i = 0; i < 64 && !has_reached(v, count); i++) {
            relax();
            v = atomic_load_explicit(&s->word, memory_order_acquire);
        }
        const int64_t t = now_ns();
        if (end == 0) end = t + spin_ns;
        if (t >= end) break;
    }
    while (!has_reached(v, count)) {
        if ((v & ASLEEP) ||
            atomic_compare_exchange_weak_explicit(&s->word, &v, v | ASLEEP, memory_order_acquire, memory_order_acquire))
            sleep_on(p, &s->word, v | ASLEEP);
        v = atomic_load_explicit(&s->word, memory_order_acquire);
    }
}

/* ---- runs ---- */

void qn_pool_barrier(qn_pool *p, int32_t i_thread)
{
    const int32_t n = p->n_threads;
    const uint32_t count = p->workers[i_thread].count += STEP;
    for (int32_t k = 0; k < p->n_rounds; k++) {
        const int32_t to = (int32_t)((i_thread + (1 << k)) % n);
        signal_set(p, &p->arrived[to * p->n_rounds + k], count);
        signal_wait(p, &p->arrived[i_thread * p->n_rounds + k], count, p->spin_barrier_ns);
    }
}

static void *work(void *arg)
{
    qn_worker *w = arg;
    qn_pool *p = w->pool;
    for (uint32_t run = STEP;; run += STEP) {
        signal_wait(p, &p->go, run, p->spin_idle_ns);
        if (!p->fn) return NULL;
        p->fn(p->arg, w->i_thread, p->n_threads);
        qn_pool_barrier(p, w->i_thread);
    }
}

/* The caller's affinity is its own. But should it sit on the CPU of a pinned worker, the two would share that CPU until the
 * scheduler notices, a few milliseconds: it moves over to the free CPU, with its mask put back as it was. */
static void step_aside(const qn_pool *p)
{
#ifdef __linux__
    if (p->home < 0) return;
    const int cpu = sched_getcpu();
    bool taken = false;
    for (int32_t i = 1; i < p->n_threads; i++) taken |= p->workers[i].cpu == cpu;
    cpu_set_t old, home;
    if (!taken || sched_getaffinity(0, sizeof old, &old) || !CPU_ISSET((size_t)p->home, &old)) return;
    CPU_ZERO(&home);
    CPU_SET((size_t)p->home, &home);
    if (!sched_setaffinity(0, sizeof home, &home)) (void)sched_setaffinity(0, sizeof old, &old);
#else
    (void)p;
#endif
}

static void start_run(qn_pool *p, qn_pool_fn fn, void *arg)
{
    p->fn = fn;
    p->arg = arg;
    const uint32_t run = (atomic_load_explicit(&p->go.word, memory_order_relaxed) & ~(uint32_t)ASLEEP) + STEP;
    signal_set(p, &p->go, run);
}

void qn_pool_run(qn_pool *p, qn_pool_fn fn, void *arg)
{
    if (p->n_threads > 1) {
        step_aside(p);
        start_run(p, fn, arg);
    }
    fn(arg, 0, p->n_threads);
    qn_pool_barrier(p, 0);
}

int32_t qn_pool_n_threads(const qn_pool *pool)
{
    return pool->n_threads;
}

/* ---- open and close ---- */

/*
 * Which CPUs a worker may run on. A pool with a thread for every performance core pins each worker to its own. A smaller pool
 * keeps its workers to the performance cores and leaves the choice among them to the scheduler: two small pools pinned by the
 * same rule would share the first CPUs while others idle. A pool with more threads than cores is not pinned at all.
 */
static void place_workers(qn_pool *p, const qn_topology *t)
{
#ifdef __linux__
    for (int32_t i = 0; i < t->n_cores; i++)
        if (p->n_threads > t->n_cores || t->cpus[i] >= CPU_SETSIZE) return;
    const bool pin = p->n_threads == t->n_cores;
    cpu_set_t cores, one;
    CPU_ZERO(&cores);
    for (int32_t i = 0; i < t->n_cores; i++) CPU_SET((size_t)t->cpus[i], &cores);
    if (pin && p->n_started > 1) p->home = t->cpus[0];
    for (int32_t i = 1; i < p->n_started; i++) {
        CPU_ZERO(&one);
        CPU_SET((size_t)t->cpus[i], &one);
        /* a refusal (the mask has just shrunk) costs speed alone */
        if (pthread_setaffinity_np(p->workers[i].id, sizeof one, pin ? &one : &cores) == 0 && pin) p->workers[i].cpu = t->cpus[i];
    }
#else
    (void)p;
    (void)t;
#endif
}

static qn_status start_workers(qn_pool *p, qn_err *err)
{
    pthread_attr_t attr;
    if (pthread_attr_init(&attr)) return qn_fail(err, QN_ERR_NOMEM, "no memory for thread attributes");
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigset_t all, old; /* signals are for the threads of the host program */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int e = 0;
    for (; p->n_started < p->n_threads && !e; p->n_started += !e) {
        qn_worker *w = &p->workers[p->n_started];
        e = pthread_create(&w->id, &attr, work, w);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    if (!e) return QN_OK;
    return qn_fail(err, QN_ERR_NOMEM, "thread %d of %d could not be started: %s", (int)p->n_started + 1, (int)p->n_threads,
                   strerror(e));
}

static void *new_lines(size_t n, size_t size)
{
    void *p = aligned_alloc(LINE, n * size); /* n is at most 512 * 9 and sizes are multiples of LINE */
    if (p) memset(p, 0, n * size);
    return p;
}

static qn_status open_in(qn_pool *p, const qn_topology *t, qn_err *err)
{
    const int32_t n = p->n_threads;
    while ((1 << p->n_rounds) < n) p->n_rounds++;
    p->home = -1;
    p->n_started = 1;
    p->workers = new_lines((size_t)n, sizeof *p->workers);
    p->arrived = new_lines((size_t)n * (size_t)(p->n_rounds ? p->n_rounds : 1), sizeof *p->arrived);
    if (!p->workers || !p->arrived) return qn_fail(err, QN_ERR_NOMEM, "no memory for a pool of %d threads", (int)n);
    for (int32_t i = 0; i < n; i++) {
        p->workers[i].pool = p;
        p->workers[i].i_thread = i;
        p->workers[i].cpu = -1;
    }
    if (n <= t->n_cpus && n <= t->n_quota) {
        p->spin_barrier_ns = SPIN_BARRIER_NS;
        p->spin_idle_ns = SPIN_IDLE_NS;
    }
    QN_TRY(start_workers(p, err));
    place_workers(p, t);
    return QN_OK;
}

qn_status qn_pool_open(qn_pool **out, int32_t n_threads, qn_err *err)
{
    *out = NULL;
    if (n_threads < 0 || n_threads > QN_POOL_MAX)
        return qn_fail(err, QN_ERR_ARG, "%d threads: must be 0 .. %d", (int)n_threads, (int)QN_POOL_MAX);
    qn_topology t;
    QN_TRY(qn_topology_here(&t, err));
    if (n_threads == 0) n_threads = qn_topology_threads(&t) < QN_POOL_MAX ? qn_topology_threads(&t) : QN_POOL_MAX;
    qn_pool *p = new_lines(1, sizeof *p);
    if (!p) {
        qn_topology_free(&t);
        return qn_fail(err, QN_ERR_NOMEM, "no memory for a pool of %d threads", (int)n_threads);
    }
    p->n_threads = n_threads;
#ifndef __linux__
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
#endif
    const qn_status st = open_in(p, &t, err);
    qn_topology_free(&t);
    if (st != QN_OK) qn_pool_close(&p);
    *out = p;
    return st;
}

void qn_pool_close(qn_pool **pool)
{
    qn_pool *p = *pool;
    *pool = NULL;
    if (!p) return;
    if (p->n_started > 1) start_run(p, NULL, NULL);
    for (int32_t i = 1; i < p->n_started; i++) pthread_join(p->workers[i].id, NULL);
#ifndef __linux__
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
#endif
    free(p->arrived);
    free(p->workers);
    free(p);
}

#include "bench_limits.h"

#include "bench.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LINE = 64 };
#define MOST_BYTES ((size_t)512 << 20) /* far above any cache; more tells nothing new          */
#define PASS_BYTES ((size_t)256 << 20) /* read in one try at least: ten milliseconds and more  */

/* Threads that wait for each other, so that what they do is done at once. */
typedef struct gate {
    atomic_int n_ready;
    int n;
} gate;

typedef struct worker {
    pthread_t thread;
    gate *gate;
    uint8_t *p;           /* [n] its part, in whole lines                                      */
    size_t n;
    int passes, ahead;    /* ahead: bytes to prefetch before what is read; 0: none             */
    const char *level;
    double begin, end, rate;
    volatile uint64_t sum; /* keeps the reads                                                  */
} worker;

static void wait_for_all(gate *g)
{
    atomic_fetch_add(&g->n_ready, 1);
    while (atomic_load_explicit(&g->n_ready, memory_order_relaxed) < g->n) sched_yield();
}

/* Eight sums, so that reading waits for memory and not for an addition. */
static void *read_part(void *arg)
{
    worker *w = arg;
    uint64_t s[LINE / sizeof(uint64_t)] = { 0 };
    wait_for_all(w->gate);
    w->begin = cli_now();
    for (int pass = 0; pass < w->passes; pass++)
        for (size_t i = 0; i < w->n; i += LINE) {
            const uint64_t *line = (const void *)(w->p + i);
            if (w->ahead) __builtin_prefetch(w->p + i + w->ahead);
            for (size_t k = 0; k < LINE / sizeof *line; k++) s[k] += line[k];
        }
    w->end = cli_now();
    for (size_t k = 0; k < LINE / sizeof *s; k++) w->sum += s[k];
    return NULL;
}

static void *fill_part(void *arg)
{
    worker *w = arg;
    memset(w->p, 1, w->n); /* pages of its own, not the shared page of zeros */
    return NULL;
}

static void *multiply(void *arg)
{
    worker *w = arg;
    wait_for_all(w->gate);
    if (qn_cpu_peak(w->level, &w->rate, NULL) != QN_OK) w->rate = 0;
    return NULL;
}

/* The same on every worker, the first of which is the caller. @return false when a thread could not be started */
static bool run_all(worker *w, int32_t n, void *(*work)(void *))
{
    gate g = { .n = n };
    int32_t n_started = 1;
    for (int32_t i = 0; i < n; i++) w[i].gate = &g;
    while (n_started < n && pthread_create(&w[n_started].thread, NULL, work, &w[n_started]) == 0) n_started++;
    if (n_started < n) atomic_store(&g.n_ready, n); /* let go of those that wait */
    else (void)work(&w[0]);
    for (int32_t i = 1; i < n_started; i++) pthread_join(w[i].thread, NULL);
    return n_started == n;
}

static double read_rate(const worker *w, int32_t n)
{
    double begin = w[0].begin, end = w[0].end, bytes = 0;
    for (int32_t i = 0; i < n; i++) {
        begin = w[i].begin < begin ? w[i].begin : begin;
        end = w[i].end > end ? w[i].end : end;
        bytes += (double)w[i].n * w[i].passes;
    }
    return end > begin ? bytes / (end - begin) : 0;
}

/* Best of three tries of each way: as the hardware fetches by itself, and with help at two distances. */
static double read_best(worker *w, int32_t n)
{
    static const int ahead[] = { 0, 1024, 4096 };
    double best = 0;
    for (int i = 0; i < 9; i++) {
        for (int32_t k = 0; k < n; k++) w[k].ahead = ahead[i % 3];
        if (!run_all(w, n, read_part)) return 0;
        const double rate = read_rate(w, n);
        best = rate > best ? rate : best;
    }
    return best;
}

double bench_read_bandwidth(int32_t threads, size_t n_bytes)
{
    const size_t want = n_bytes < MOST_BYTES ? n_bytes : MOST_BYTES, line = LINE;
    const size_t part = (want / (size_t)threads / line + 1) * line, all = part * (size_t)threads;
    worker *w = calloc((size_t)threads, sizeof *w);
    uint8_t *p = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    double best = 0;
#ifdef MADV_HUGEPAGE
    if (p != MAP_FAILED) (void)madvise(p, all, MADV_HUGEPAGE); /* as the weights are kept */
#endif
    if (w && p != MAP_FAILED) {
        const int passes = (int)(PASS_BYTES / all) + 1;
        for (int32_t i = 0; i < threads; i++) w[i] = (worker){ .p = p + part * (size_t)i, .n = part, .passes = passes };
        best = run_all(w, threads, fill_part) ? read_best(w, threads) : 0;
    }
    if (p != MAP_FAILED) munmap(p, all);
    free(w);
    return best;
}

/* Each thread reports its best moment, so there may be no more threads than processors to run them at once. */
static int32_t at_once(int32_t threads)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) return threads;
    return threads < CPU_COUNT(&set) ? threads : (int32_t)CPU_COUNT(&set);
}

double bench_multiply_peak(int32_t threads, const char *level)
{
    const int32_t n = at_once(threads);
    worker *w = calloc((size_t)n, sizeof *w);
    double sum = 0;
    if (!w) return 0;
    for (int32_t i = 0; i < n; i++) w[i].level = level;
    if (run_all(w, n, multiply))
        for (int32_t i = 0; i < n; i++) sum += w[i].rate;
    free(w);
    return sum;
}

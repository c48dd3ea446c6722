/* Threads that follow the machine, and a pool that runs one function on all of them. */
#ifndef QN_BASE_POOL_H
#define QN_BASE_POOL_H

#include "src/base/err.h"

typedef struct qn_pool qn_pool;

/** Start n_threads - 1 workers (the caller is thread 0), with 1 MiB stacks, pinned to distinct CPUs of the affinity mask where there are
 *  enough. @param n_threads 1 .. 512; 0: qn_threads_default(). */
qn_status qn_pool_open(qn_pool **out, int32_t n_threads, qn_err *err);
/** Joins the workers. Not while a run is under way. */
void qn_pool_close(qn_pool **pool);
int32_t qn_pool_n_threads(const qn_pool *pool);

typedef void (*qn_pool_fn)(void *arg, int32_t i_thread, int32_t n_threads);
/** Run fn once on every thread, the calling one included, and return when all have finished. Workers spin a few microseconds for the
 *  next run, then sleep. */
void qn_pool_run(qn_pool *pool, qn_pool_fn fn, void *arg);
/** Inside a run: wait until every thread of the pool is here. Spins for a bounded time, then sleeps. What was written before it by any
 *  thread is seen after it by all. */
void qn_pool_barrier(qn_pool *pool, int32_t i_thread);

/** The part [*begin, *end) of n things that thread i of n_threads does: contiguous, sizes differ by at most one. */
static inline void qn_split(int64_t n, int32_t i, int32_t n_threads, int64_t *begin, int64_t *end)
{
    *begin = n * i / n_threads;
    *end = n * (i + 1) / n_threads;
}

/** Threads to use by default: min(CPUs in the affinity mask, cgroup quota rounded down, physical cores among them), at least 1. */
int32_t qn_threads_default(void);

/** Seconds on a monotonic clock. */
double qn_now(void);

#endif

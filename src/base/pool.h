/* Threads that follow the machine, and a pool that runs one function on all of them. */
#ifndef QN_BASE_POOL_H
#define QN_BASE_POOL_H

#include "src/base/err.h"

typedef struct qn_pool qn_pool;

enum { QN_POOL_MAX = 512 };

/**
 * Start n_threads - 1 workers; the caller is thread 0. Workers have 1 MiB stacks and all signals blocked. With a thread for each
 * performance core of the affinity mask they are pinned to one core each, with fewer they are kept to these cores, with more they
 * are not pinned. The caller's affinity stays as it is.
 * @param n_threads  1 .. QN_POOL_MAX; 0: qn_threads_default()
 * @return QN_ERR_ARG outside that range; QN_ERR_NOMEM: no memory, or the system refused a thread
 */
qn_status qn_pool_open(qn_pool **out, int32_t n_threads, qn_err *err);
/** Joins the workers. Not while a run is under way. The pointer may hold NULL and is set to NULL. */
void qn_pool_close(qn_pool **pool);
int32_t qn_pool_n_threads(const qn_pool *pool);

typedef void (*qn_pool_fn)(void *arg, int32_t i_thread, int32_t n_threads);
/** Run fn once on every thread, the calling one included, and return when all have finished. One run at a time, not from inside a
 * run. Workers spin for the next run (100 us, not at all with more threads than CPUs), then sleep. */
void qn_pool_run(qn_pool *pool, qn_pool_fn fn, void *arg);
/** Inside a run: wait until every thread of the pool is here. Spins for 50 us, then sleeps. What was written before it by any
 *  thread is seen after it by all. */
void qn_pool_barrier(qn_pool *pool, int32_t i_thread);

/** The part [*begin, *end) of n things that thread i of n_threads does: contiguous, sizes differ by at most one. */
static inline void qn_split(int64_t n, int32_t i, int32_t n_threads, int64_t *begin, int64_t *end)
{
    *begin = n * i / n_threads;
    *end = n * (i + 1) / n_threads;
}

/** Threads to use by default: performance cores that the affinity mask has a CPU of, but no more than the cgroup quota rounded
 *  down. 1 .. QN_POOL_MAX. */
int32_t qn_threads_default(void);

/** The most threads that can run at once: CPUs of the affinity mask. 1 .. QN_POOL_MAX. */
int32_t qn_threads_most(void);

/** Seconds on a monotonic clock. */
double qn_now(void);

#endif

/* Which CPUs this process may use, which of them are fast whole cores, and how many the container grants. */
#ifndef QN_BASE_TOPOLOGY_H
#define QN_BASE_TOPOLOGY_H

#include "src/base/err.h"

typedef struct qn_topology {
    int32_t *cpus;   /* [n_cpus] CPU numbers of the mask; the first n_cores are one of each performance core */
    int32_t n_cpus;  /* 1 .. */
    int32_t n_cores; /* 1 .. n_cpus; physical performance cores with a CPU in the mask */
    int32_t n_quota; /* 1 ..; whole CPUs that the cgroup quota grants; INT32_MAX: no limit */
} qn_topology;

/**
 * Read the machine's description below `root` ("" for the real one): sys/devices/system/cpu, sys/devices/cpu_core,
 * proc/self/cgroup and sys/fs/cgroup. What is missing there counts as: every CPU a core of its own, all equally fast, no quota.
 *
 * @param mask  [n_mask] CPU numbers the process may run on, ascending
 * @return QN_OK; QN_ERR_NOMEM; QN_ERR_ARG for an empty mask
 */
qn_status qn_topology_read(qn_topology *out, const char *root, const int32_t *mask, int32_t n_mask, qn_err *err);

/** The same for the calling thread's affinity mask and this machine; where the system has no mask, all its CPUs. */
qn_status qn_topology_here(qn_topology *out, qn_err *err);

void qn_topology_free(qn_topology *t);

/** Threads that pay off: the smaller of performance cores and quota, at least 1. */
int32_t qn_topology_threads(const qn_topology *t);

/**
 * The first CPU of a kernel list ("0-3,8,10-11\n") that is at least `from`, or -1. A list that is not well formed is read up to
 * the first wrong byte. `from` at least 0.
 */
int32_t qn_cpu_list_next(const char *list, int32_t from);

#endif

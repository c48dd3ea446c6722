/* What the machine could do at most. */
#ifndef QUERN_BENCH_LIMITS_H
#define QUERN_BENCH_LIMITS_H

#include <stddef.h>
#include <stdint.h>

/**
 * Bytes a second that `threads` threads read together, over and over, each its own part of `n_bytes` (of which at most 512 MB are taken):
 * the best of a few ways and passes.
 * @return 0 where there was no memory or no thread to be had
 */
double bench_read_bandwidth(int32_t threads, size_t n_bytes);

/** Multiply-adds a second of `threads` threads at once at a level, as qn_cpu_peak has it; NULL: the highest. 0: not to be had. */
double bench_multiply_peak(int32_t threads, const char *level);

#endif

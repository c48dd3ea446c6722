/* What the machine could do at most. */
#ifndef QUERN_BENCH_LIMITS_H
#define QUERN_BENCH_LIMITS_H

#include <stdint.h>

/**
 * Bytes a second that `threads` threads read from memory together: the best of a few passes over a buffer larger than caches are.
 * @return 0 where there was no memory or no thread to be had
 */
double bench_read_bandwidth(int32_t threads);

#endif

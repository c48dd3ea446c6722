#include "bench_limits.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BUFFER = 256 << 20, PASSES = 2, TRIES = 4 };

typedef struct reader {
    pthread_t thread;
    const uint64_t *p;
    size_t n;             /* words */
    volatile uint64_t sum; /* keeps the reads */
} reader;

/* Eight sums, so that reading waits for memory and not for an addition. */
static void *read_part(void *arg)
{
    reader *r = arg;
    uint64_t s[8] = { 0 };
    for (int pass = 0; pass < PASSES; pass++)
        for (size_t i = 0; i + 8 <= r->n; i += 8)
            for (int k = 0; k < 8; k++) s[k] += r->p[i + (size_t)k];
    for (int k = 0; k < 8; k++) r->sum += s[k];
    return NULL;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* All threads read their parts once. @return bytes a second; 0 when one could not be started */
static double read_all(reader *readers, int32_t threads)
{
    int32_t n_started = 0;
    const double began = seconds();
    while (n_started < threads && pthread_create(&readers[n_started].thread, NULL, read_part, &readers[n_started]) == 0) n_started++;
    for (int32_t i = 0; i < n_started; i++) pthread_join(readers[i].thread, NULL);
    return n_started == threads ? (double)PASSES * BUFFER / (seconds() - began) : 0;
}

double bench_read_bandwidth(int32_t threads)
{
    const size_t n = BUFFER / sizeof(uint64_t) / (size_t)threads;
    reader *readers = calloc((size_t)threads, sizeof *readers);
    uint64_t *buffer = malloc(BUFFER);
    double best = 0;
    if (readers && buffer) {
        memset(buffer, 1, BUFFER); /* pages of its own, not the shared page of zeros */
        for (int32_t i = 0; i < threads; i++) readers[i] = (reader){ .p = buffer + n * (size_t)i, .n = n };
        for (int i = 0; i < TRIES; i++) {
            const double rate = read_all(readers, threads);
            best = rate > best ? rate : best;
        }
    }
    free(readers);
    free(buffer);
    return best;
}

/* What the system knows of this process and of files. All of it is Linux's; elsewhere nothing is known. */
#ifndef QUERN_BENCH_PROCESS_H
#define QUERN_BENCH_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

/** Begin to watch the peak of resident memory anew. @return false: the system does not let one */
bool bench_peak_reset(void);
/** Most bytes of memory that were resident since then; 0: not known. */
uint64_t bench_peak_bytes(void);
/** Share of a file's pages that memory holds already, 0 to 1; below 0: not known. */
double bench_file_cached(const char *path);

#endif

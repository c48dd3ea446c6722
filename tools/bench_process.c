#include "bench_process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool bench_peak_reset(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    const bool written = f && fputs("5", f) >= 0; /* 5: the peak, see proc(5) */
    return f && fclose(f) == 0 && written;
}

uint64_t bench_peak_bytes(void)
{
    char line[256];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f) && sscanf(line, "VmHWM: %llu kB", &kib) != 1) continue;
    if (f) fclose(f);
    return kib * 1024;
}

/* In windows, so that the answer of a file of any size takes 16 KiB. */
static double cached_pages(int fd, int64_t size)
{
    enum { PAGES = 16384 };
    unsigned char in[PAGES];
    const int64_t page = sysconf(_SC_PAGESIZE), window = page * PAGES, n_pages = (size + page - 1) / page;
    int64_t n_in = 0;
    for (int64_t at = 0; at < size; at += window) {
        const size_t n = (size_t)(size - at < window ? size - at : window);
        void *p = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, at);
        if (p == MAP_FAILED) return -1;
        const int bad = mincore(p, n, in);
        munmap(p, n);
        if (bad) return -1;
        for (size_t i = 0; i * (size_t)page < n; i++) n_in += in[i] & 1;
    }
    return n_pages ? (double)n_in / (double)n_pages : -1;
}

double bench_file_cached(const char *path)
{
    struct stat st;
    const int fd = open(path, O_RDONLY);
    const double share = fd >= 0 && fstat(fd, &st) == 0 ? cached_pages(fd, st.st_size) : -1;
    if (fd >= 0) close(fd);
    return share;
}

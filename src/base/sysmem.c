#include "src/base/sysmem.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#if defined(__linux__)
static bool read_number(const char *path, uint64_t *out)
{
    FILE *f = fopen(path, "r");
    unsigned long long v;
    if (!f) return false;
    const bool ok = fscanf(f, "%llu", &v) == 1; /* "max" is no number */
    fclose(f);
    if (ok) *out = v;
    return ok;
}

static uint64_t system_available(void)
{
    FILE *f = fopen("/proc/meminfo", "r");
    char line[128];
    uint64_t bytes = UINT64_MAX;
    if (!f) return bytes;
    while (fgets(line, sizeof line, f)) {
        unsigned long long kb;
        if (sscanf(line, "MemAvailable: %llu kB", &kb) == 1) bytes = (uint64_t)kb * 1024;
    }
    fclose(f);
    return bytes;
}

/* File pages are counted in "current" and can be given back: they are not held against us. */
static uint64_t group_available(void)
{
    static const char *const paths[][2] = {
        { "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current" },
        { "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes" },
    };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        uint64_t limit, used;
        if (!read_number(paths[i][0], &limit)) continue;
        if (!read_number(paths[i][1], &used) || used > limit) used = 0;
        return limit - used / 2; /* half of it is taken for file pages: a refusal must be sure */
    }
    return UINT64_MAX;
}

uint64_t qn_memory_available(void)
{
    const uint64_t a = system_available(), b = group_available();
    return a < b ? a : b;
}
#else
uint64_t qn_memory_available(void)
{
    return UINT64_MAX;
}
#endif

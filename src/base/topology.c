#include "src/base/topology.h"

#include "src/base/mem.h"
#include "src/base/pool.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_FILE = 4096, MAX_PATH_BYTES = 4352, MAX_CPUS = 1 << 16 };

/* A core counts as a performance core from this part of the fastest one's figure on. Capacities: little Arm cores have 0.15 to
 * 0.45 of the big ones, middle ones 0.75 and more. Clocks: efficiency cores run at 0.65 to 0.81, favoured cores of one kind
 * differ by up to 0.07. */
enum { CAPACITY_PERCENT = 60, CLOCK_PERCENT = 85 };

/* Contents of the file `root/dir/name` ([MAX_FILE], cut off there) with a NUL behind; false when it cannot be read. */
static bool read_file(const char *root, const char *dir, const char *name, char *text)
{
    char path[MAX_PATH_BYTES];
    const int n = snprintf(path, sizeof path, "%s%s/%s", root, dir, name);
    if (n < 0 || (size_t)n >= sizeof path) return false;
    FILE *f = fopen(path, "re");
    if (!f) return false;
    const size_t len = fread(text, 1, MAX_FILE - 1, f);
    fclose(f);
    text[len] = 0;
    return len > 0;
}

/* A decimal number at *p, which moves behind it; -1 when there is none. Large ones stay at `limit`. */
static int64_t read_number(const char **p, int64_t limit)
{
    if (**p < '0' || **p > '9') return -1;
    int64_t v = 0;
    for (; **p >= '0' && **p <= '9'; ++*p) {
        v = v * 10 + (**p - '0');
        if (v > limit) v = limit;
    }
    return v;
}

static int64_t read_file_number(const char *root, const char *dir, const char *name)
{
    char text[MAX_FILE];
    const char *p = text;
    return read_file(root, dir, name, text) ? read_number(&p, INT64_MAX / 200) : -1;
}

int32_t qn_cpu_list_next(const char *list, int32_t from)
{
    int64_t best = -1;
    for (const char *p = list;;) {
        const int64_t a = read_number(&p, INT32_MAX);
        if (a < 0) break;
        int64_t b = a;
        if (*p == '-') {
            p++;
            b = read_number(&p, INT32_MAX);
        }
        const int64_t first = a > from ? a : from;
        if (first <= b && (best < 0 || first < best)) best = first;
        if (*p++ != ',') break;
    }
    return (int32_t)best;
}

/* ---- cores ---- */

static bool in_mask(const int32_t *mask, int32_t n, int32_t cpu)
{
    int32_t lo = 0, hi = n;
    while (lo < hi) {
        const int32_t mid = lo + (hi - lo) / 2;
        if (mask[mid] < cpu)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n && mask[lo] == cpu;
}

/* Is this CPU the first of its core's that the mask has? */
static bool leads_core(const char *root, const int32_t *mask, int32_t n, int32_t cpu)
{
    char dir[64], text[MAX_FILE];
    snprintf(dir, sizeof dir, "/sys/devices/system/cpu/cpu%d/topology", (int)cpu);
    if (!read_file(root, dir, "core_cpus_list", text) && !read_file(root, dir, "thread_siblings_list", text)) return true;
    for (int32_t c = qn_cpu_list_next(text, 0); c >= 0 && c < cpu; c = qn_cpu_list_next(text, c + 1))
        if (in_mask(mask, n, c)) return false;
    return true;
}

/* speed[i] of mask[i] from one file of each CPU; false unless every CPU has it. */
static bool read_speeds(const char *root, const char *name, const int32_t *mask, int32_t n, int64_t *speed)
{
    for (int32_t i = 0; i < n; i++) {
        char dir[64];
        snprintf(dir, sizeof dir, "/sys/devices/system/cpu/cpu%d", (int)mask[i]);
        speed[i] = read_file_number(root, dir, name);
        if (speed[i] <= 0) return false;
    }
    return true;
}

/* speed[i] = 1 for CPUs that x86 hybrids list as performance cores, else 0; false when none of the mask is listed. */
static bool read_core_list(const char *root, const int32_t *mask, int32_t n, int64_t *speed)
{
    char text[MAX_FILE];
    bool any = false;
    if (!read_file(root, "/sys/devices/cpu_core", "cpus", text)) return false;
    for (int32_t i = 0; i < n; i++) {
        speed[i] = qn_cpu_list_next(text, mask[i]) == mask[i];
        any |= speed[i] != 0;
    }
    return any;
}

/* Sort the mask into t->cpus: leaders of performance cores first, everything else behind, each in ascending order. */
static void order_cpus(qn_topology *t, const char *root, const int32_t *mask, int32_t n, int64_t *speed)
{
    int64_t percent = 0, best = 0;
    if (read_core_list(root, mask, n, speed))
        percent = 100;
    else if (read_speeds(root, "cpu_capacity", mask, n, speed))
        percent = CAPACITY_PERCENT;
    else if (read_speeds(root, "cpufreq/cpuinfo_max_freq", mask, n, speed))
        percent = CLOCK_PERCENT;
    else
        memset(speed, 0, (size_t)n * sizeof *speed);
    for (int32_t i = 0; i < n; i++)
        if (speed[i] > best) best = speed[i];
    for (int32_t i = 0; i < n; i++) /* from here on: 1 for the leader of a performance core */
        speed[i] = speed[i] * 100 >= best * percent && leads_core(root, mask, n, mask[i]);
    t->n_cpus = 0;
    for (int32_t i = 0; i < n; i++)
        if (speed[i]) t->cpus[t->n_cpus++] = mask[i];
    t->n_cores = t->n_cpus;
    for (int32_t i = 0; i < n; i++)
        if (!speed[i]) t->cpus[t->n_cpus++] = mask[i];
    if (t->n_cores == 0) t->n_cores = 1; /* sibling lists that contradict each other */
}

/* ---- cgroup quota ---- */

/* Whole CPUs that the quota of one cgroup folder grants, at least 1; INT32_MAX without one. */
static int32_t read_quota(const char *root, const char *dir)
{
    char text[MAX_FILE];
    const char *p = text;
    int64_t quota = -1, period = -1;
    if (read_file(root, dir, "cpu.max", text)) { /* version 2: "max 100000" or "150000 100000" */
        quota = read_number(&p, INT64_MAX / 200);
        while (*p == ' ') p++;
        period = read_number(&p, INT64_MAX / 200);
    } else { /* version 1: -1 means none */
        quota = read_file_number(root, dir, "cpu.cfs_quota_us");
        period = read_file_number(root, dir, "cpu.cfs_period_us");
    }
    if (quota < 0 || period <= 0) return INT32_MAX;
    const int64_t n = quota / period;
    return n < 1 ? 1 : n < INT32_MAX ? (int32_t)n : INT32_MAX;
}

/* The smallest quota of a cgroup and all above it. A container sees its own cgroup as the mount's root while `path` may be the
 * host's name for it: folders that are not there are passed over. */
static int32_t read_quota_upwards(const char *root, const char *mount, const char *path, size_t path_len)
{
    char dir[MAX_PATH_BYTES];
    int32_t least = INT32_MAX;
    const int at = snprintf(dir, sizeof dir, "%s", mount);
    if (path_len >= sizeof dir - (size_t)at) return least;
    memcpy(dir + at, path, path_len);
    for (size_t len = (size_t)at + path_len;;) {
        while (len > (size_t)at && dir[len - 1] == '/') len--;
        dir[len] = 0;
        const int32_t q = read_quota(root, dir);
        if (q < least) least = q;
        if (len == (size_t)at) return least;
        while (len > (size_t)at && dir[len - 1] != '/') len--;
    }
}

/* Does the comma-separated list [s, end) hold the word? */
static bool has_controller(const char *s, const char *end, const char *word)
{
    const size_t n = strlen(word);
    while (s < end) {
        const char *comma = memchr(s, ',', (size_t)(end - s));
        const char *stop = comma ? comma : end;
        if ((size_t)(stop - s) == n && !memcmp(s, word, n)) return true;
        s = stop + 1;
    }
    return false;
}

/* Lines of /proc/self/cgroup: "0::/path" (version 2), "4:cpu,cpuacct:/path" (version 1). */
static int32_t read_all_quotas(const char *root)
{
    static const char *const mounts_v2[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
    static const char *const mounts_v1[] = { "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct" };
    char text[MAX_FILE];
    int32_t least = INT32_MAX;
    if (!read_file(root, "/proc/self", "cgroup", text)) return least;
    for (const char *line = text; *line;) {
        const char *end = strchr(line, '\n');
        if (!end) end = line + strlen(line);
        const char *a = memchr(line, ':', (size_t)(end - line)), *b = a ? memchr(a + 1, ':', (size_t)(end - a - 1)) : NULL;
        const bool v2 = b && b == a + 1;
        if (b && (v2 || has_controller(a + 1, b, "cpu"))) {
            for (int i = 0; i < 2; i++) {
                const int32_t q = read_quota_upwards(root, v2 ? mounts_v2[i] : mounts_v1[i], b + 1, (size_t)(end - b - 1));
                if (q < least) least = q;
            }
        }
        line = *end ? end + 1 : end;
    }
    return least;
}

/* ---- the whole ---- */

qn_status qn_topology_read(qn_topology *out, const char *root, const int32_t *mask, int32_t n_mask, qn_err *err)
{
    *out = (qn_topology){ 0 };
    if (n_mask < 1 || n_mask > MAX_CPUS) return qn_fail(err, QN_ERR_ARG, "an affinity mask of %d CPUs", (int)n_mask);
    int64_t *speed = qn_new((size_t)n_mask, sizeof *speed);
    out->cpus = qn_new((size_t)n_mask, sizeof *out->cpus);
    if (!speed || !out->cpus) {
        free(speed);
        qn_topology_free(out);
        return qn_fail(err, QN_ERR_NOMEM, "no memory for the list of %d CPUs", (int)n_mask);
    }
    order_cpus(out, root, mask, n_mask, speed);
    out->n_quota = read_all_quotas(root);
    free(speed);
    return QN_OK;
}

/* The calling thread's mask as a list that the caller frees; NULL when memory is short or there is no mask. */
static int32_t *read_mask(int32_t *n)
{
    int32_t *list = NULL;
    *n = 0;
#ifdef __linux__
    for (int32_t cap = 1024; cap <= MAX_CPUS; cap *= 2) { /* the kernel refuses a set that is smaller than its own */
        cpu_set_t *set = CPU_ALLOC((size_t)cap);
        if (!set) return NULL;
        const size_t bytes = CPU_ALLOC_SIZE((size_t)cap);
        const bool ok = !sched_getaffinity(0, bytes, set), again = !ok && errno == EINVAL;
        if (ok) list = qn_new((size_t)CPU_COUNT_S(bytes, set), sizeof *list);
        if (list)
            for (int32_t i = 0; i < cap; i++)
                if (CPU_ISSET_S((size_t)i, bytes, set)) list[(*n)++] = i;
        CPU_FREE(set);
        if (!again) break;
    }
#endif
    return list;
}

qn_status qn_topology_here(qn_topology *out, qn_err *err)
{
    int32_t n;
    int32_t *mask = read_mask(&n);
    if (!mask) {
        const long online = sysconf(_SC_NPROCESSORS_ONLN);
        n = online < 1 ? 1 : online > MAX_CPUS ? MAX_CPUS : (int32_t)online;
        mask = qn_new((size_t)n, sizeof *mask);
        if (!mask) return qn_fail(err, QN_ERR_NOMEM, "no memory for the list of %d CPUs", (int)n);
        for (int32_t i = 0; i < n; i++) mask[i] = i;
    }
    const qn_status st = qn_topology_read(out, "", mask, n, err);
    free(mask);
    return st;
}

void qn_topology_free(qn_topology *t)
{
    free(t->cpus);
    *t = (qn_topology){ 0 };
}

int32_t qn_topology_threads(const qn_topology *t)
{
    const int32_t n = t->n_cores < t->n_quota ? t->n_cores : t->n_quota;
    return n < 1 ? 1 : n;
}

int32_t qn_threads_default(void)
{
    qn_topology t;
    if (qn_topology_here(&t, NULL) != QN_OK) return 1;
    const int32_t n = qn_topology_threads(&t);
    qn_topology_free(&t);
    return n > QN_POOL_MAX ? QN_POOL_MAX : n;
}

int32_t qn_threads_most(void)
{
    qn_topology t;
    if (qn_topology_here(&t, NULL) != QN_OK) return 1;
    const int32_t n = t.n_cpus;
    qn_topology_free(&t);
    return n > QN_POOL_MAX ? QN_POOL_MAX : n;
}

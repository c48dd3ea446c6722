/* Threads follow the machine: made-up /sys and /proc trees, one a machine. */
#include "src/base/pool.h"
#include "src/base/topology.h"

#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { MAX_CPU = 64 };

static char root[64];

static int new_tree(void **state)
{
    (void)state;
    strcpy(root, "/tmp/quern-topology-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int drop_tree(void **state)
{
    (void)state;
    char cmd[96];
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", root);
    return system(cmd);
}

/* Write a file of the tree, its folders included. */
static void put(const char *path, const char *text)
{
    char full[512];
    assert_true((size_t)snprintf(full, sizeof full, "%s%s", root, path) < sizeof full);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(full, 0700);
        *p = '/';
    }
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void put_cpu(int cpu, const char *file, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", cpu, file);
    put(path, text);
}

static void put_cpu_number(int cpu, const char *file, long v)
{
    char text[32];
    snprintf(text, sizeof text, "%ld\n", v);
    put_cpu(cpu, file, text);
}

/* Read the tree with the mask [first, first + n). */
static qn_topology read_tree(int first, int n)
{
    int32_t mask[MAX_CPU];
    qn_topology t;
    qn_err err;
    assert_true(n <= MAX_CPU);
    for (int i = 0; i < n; i++) mask[i] = first + i;
    assert_int_equal(qn_topology_read(&t, root, mask, n, &err), QN_OK);
    assert_int_equal(t.n_cpus, n);
    return t;
}

static void expect(qn_topology t, int cores, int quota, int threads)
{
    assert_int_equal(t.n_cores, cores);
    assert_int_equal(t.n_quota, quota);
    assert_int_equal(qn_topology_threads(&t), threads);
    qn_topology_free(&t);
    assert_null(t.cpus);
}

static void test_bare_tree(void **state)
{
    (void)state;
    expect(read_tree(0, 5), 5, INT_MAX, 5);
}

static void test_smt_pairs(void **state)
{
    (void)state; /* cpu0 and cpu1 are one core, and so on */
    for (int i = 0; i < 8; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d-%d\n", i & ~1, i | 1);
        put_cpu(i, "topology/core_cpus_list", text);
    }
    qn_topology t = read_tree(0, 8);
    const int32_t want[] = { 0, 2, 4, 6, 1, 3, 5, 7 };
    assert_memory_equal(t.cpus, want, sizeof want);
    expect(t, 4, INT_MAX, 4);
    expect(read_tree(1, 1), 1, INT_MAX, 1); /* the second thread of a core is a core when the first is not ours */
    expect(read_tree(1, 3), 2, INT_MAX, 2);
}

static void test_interleaved_ids(void **state)
{
    (void)state; /* two sockets, odd and even; siblings 8 apart; the older file name */
    for (int i = 0; i < 16; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d,%d\n", i & 7, (i & 7) + 8);
        put_cpu(i, "topology/thread_siblings_list", text);
        put_cpu_number(i, "topology/physical_package_id", i & 1);
    }
    expect(read_tree(0, 16), 8, INT_MAX, 8);
    expect(read_tree(4, 8), 8, INT_MAX, 8);
    qn_topology t = read_tree(6, 4); /* 6 7 8 9: siblings 14, 15, 0 and 1 are outside */
    expect(t, 4, INT_MAX, 4);
}

static void test_hybrid_listed(void **state)
{
    (void)state; /* 6 performance cores with two threads each, 8 efficiency cores */
    for (int i = 0; i < 20; i++) {
        char text[16];
        if (i < 12)
            snprintf(text, sizeof text, "%d-%d\n", i & ~1, i | 1);
        else
            snprintf(text, sizeof text, "%d\n", i);
        put_cpu(i, "topology/core_cpus_list", text);
    }
    put("/sys/devices/cpu_core/cpus", "0-11\n");
    put("/sys/devices/cpu_atom/cpus", "12-19\n");
    expect(read_tree(0, 20), 6, INT_MAX, 6);
    expect(read_tree(10, 10), 1, INT_MAX, 1);
    expect(read_tree(12, 8), 8, INT_MAX, 8); /* a mask of efficiency cores alone */
}

static void test_hybrid_without_smt(void **state)
{
    (void)state; /* 8 + 12 cores, one thread each, list absent, clocks tell */
    for (int i = 0; i < 20; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d\n", i);
        put_cpu(i, "topology/core_cpus_list", text);
        put_cpu_number(i, "cpufreq/cpuinfo_max_freq", i < 2 ? 5700000 : i < 8 ? 5500000 : 4600000);
    }
    expect(read_tree(0, 20), 8, INT_MAX, 8);
}

static void test_hybrid_capacity(void **state)
{
    (void)state; /* one prime, three big, four little; little ones first as usual on Arm */
    static const int capacity[8] = { 325, 325, 325, 325, 870, 870, 870, 1024 };
    for (int i = 0; i < 8; i++) {
        put_cpu_number(i, "cpu_capacity", capacity[i]);
        put_cpu_number(i, "cpufreq/cpuinfo_max_freq", 3000000);
    }
    qn_topology t = read_tree(0, 8);
    const int32_t want[] = { 4, 5, 6, 7, 0, 1, 2, 3 };
    assert_memory_equal(t.cpus, want, sizeof want);
    expect(t, 4, INT_MAX, 4);
    expect(read_tree(0, 4), 4, INT_MAX, 4);
}

static void test_favoured_cores(void **state)
{
    (void)state; /* one kind of core, clocks a few percent apart */
    for (int i = 0; i < 16; i++) put_cpu_number(i, "cpufreq/cpuinfo_max_freq", i < 8 ? 5850000 : 5450000);
    expect(read_tree(0, 16), 16, INT_MAX, 16);
}

static void test_speed_of_some(void **state)
{
    (void)state; /* a figure that some CPUs lack says nothing */
    put_cpu_number(0, "cpu_capacity", 1024);
    put_cpu_number(1, "cpu_capacity", 0);
    expect(read_tree(0, 4), 4, INT_MAX, 4);
}

static void test_quota_v2(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/user.slice/job\n");
    put("/sys/fs/cgroup/user.slice/job/cpu.max", "200000 100000\n");
    expect(read_tree(0, 20), 20, 2, 2);
    put("/sys/fs/cgroup/user.slice/job/cpu.max", "50000 100000\n");
    expect(read_tree(0, 20), 20, 1, 1);
    put("/sys/fs/cgroup/user.slice/job/cpu.max", "290000 100000\n");
    expect(read_tree(0, 20), 20, 2, 2);
    put("/sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n");
    expect(read_tree(0, 20), 20, INT_MAX, 20);
    put("/sys/fs/cgroup/user.slice/cpu.max", "700000 100000\n"); /* the parent's holds too */
    expect(read_tree(0, 20), 20, 7, 7);
    put("/sys/fs/cgroup/cpu.max", "300000 100000\n"); /* and the root's: a container's own */
    expect(read_tree(0, 20), 20, 3, 3);
    expect(read_tree(0, 2), 2, 3, 2);
}

static void test_quota_container_path(void **state)
{
    (void)state; /* the name is the host's, the mount shows the container's cgroup as its root */
    put("/proc/self/cgroup", "0::/../../kubepods/pod1234/abcd\n");
    put("/sys/fs/cgroup/cpu.max", "400000 100000\n");
    expect(read_tree(0, 20), 20, 4, 4);
}

static void test_quota_v1(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "9:name=systemd:/a\n5:cpuset:/other\n4:cpuacct,cpu:/docker/abc\n0::/\n");
    put("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000\n");
    expect(read_tree(0, 20), 20, INT_MAX, 20);
    put("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "250000\n");
    expect(read_tree(0, 20), 20, 2, 2);
    put("/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us", "100000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n");
    expect(read_tree(0, 20), 20, 1, 1);
}

static void test_quota_nonsense(void **state)
{
    (void)state;
    static const char *const texts[] = { "",          "\n",       "max",
                                         "100000",    "100000 0", "-5 100000",
                                         "100000 -1", "x y",      "99999999999999999999 1" };
    put("/proc/self/cgroup", "0::/\nnonsense\n:\n::\n0:\n7:cpu\n0::/a");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put("/sys/fs/cgroup/cpu.max", texts[i]);
        expect(read_tree(0, 3), 3, INT_MAX, 3);
    }
}

static void test_long_cgroup_path(void **state)
{
    (void)state;
    char text[6000] = "0::/";
    memset(text + 4, 'a', sizeof text - 6);
    put("/proc/self/cgroup", text);
    expect(read_tree(0, 3), 3, INT_MAX, 3);
}

static void test_bad_mask(void **state)
{
    (void)state;
    qn_topology t;
    qn_err err;
    assert_int_equal(qn_topology_read(&t, root, NULL, 0, &err), QN_ERR_ARG);
    assert_null(t.cpus);
}

static void test_cpu_list(void **state)
{
    (void)state;
    assert_int_equal(qn_cpu_list_next("0-3,8,10-11\n", 0), 0);
    assert_int_equal(qn_cpu_list_next("0-3,8,10-11\n", 3), 3);
    assert_int_equal(qn_cpu_list_next("0-3,8,10-11\n", 4), 8);
    assert_int_equal(qn_cpu_list_next("0-3,8,10-11\n", 9), 10);
    assert_int_equal(qn_cpu_list_next("0-3,8,10-11\n", 12), -1);
    assert_int_equal(qn_cpu_list_next("9,2", 0), 2);
    assert_int_equal(qn_cpu_list_next("", 0), -1);
    assert_int_equal(qn_cpu_list_next("x", 0), -1);
    assert_int_equal(qn_cpu_list_next("5-", 5), -1);
    assert_int_equal(qn_cpu_list_next("7-3", 0), -1);
    assert_int_equal(qn_cpu_list_next("99999999999999999999", 1), INT_MAX);
}

/* The real machine: the mask bounds the threads, and narrowing it is noticed. */
static void test_here(void **state)
{
    (void)state;
    cpu_set_t old, one;
    assert_int_equal(sched_getaffinity(0, sizeof old, &old), 0);
    assert_in_range(qn_threads_default(), 1, CPU_COUNT(&old));
    CPU_ZERO(&one);
    for (size_t i = 0; CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &old)) CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(qn_threads_default(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof old, &old), 0);
}

#define TREE_TEST(f) cmocka_unit_test_setup_teardown(f, new_tree, drop_tree)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_bare_tree),          TREE_TEST(test_smt_pairs),
        TREE_TEST(test_interleaved_ids),    TREE_TEST(test_hybrid_listed),
        TREE_TEST(test_hybrid_without_smt), TREE_TEST(test_hybrid_capacity),
        TREE_TEST(test_favoured_cores),     TREE_TEST(test_speed_of_some),
        TREE_TEST(test_quota_v2),           TREE_TEST(test_quota_container_path),
        TREE_TEST(test_quota_v1),           TREE_TEST(test_quota_nonsense),
        TREE_TEST(test_long_cgroup_path),   TREE_TEST(test_bad_mask),
        cmocka_unit_test(test_cpu_list),    cmocka_unit_test(test_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

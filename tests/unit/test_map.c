/* Mapped files: the bytes are there, stay there after a hint, and a dropped range takes no memory. */
#include "src/base/map.h"
#include "tests/common/fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/quern-map-XXXXXX";

static void write_file(size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    for (size_t i = 0; i < n; i++) putc((int)(i % 251), f);
    assert_int_equal(fclose(f), 0);
}

static int make_file(void **state)
{
    (void)state;
    const int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static uint64_t sum(const qn_map *m)
{
    uint64_t s = 0;
    for (size_t i = 0; i < m->n_bytes; i++) s += m->ptr[i];
    return s;
}

/* Resident kB of the mapping that begins at p, or -1 where the system does not tell. */
static long resident_kb(const void *p)
{
    char line[256], want[32];
    long kb = -1;
    bool here = false;
    FILE *f = fopen("/proc/self/smaps", "r");
    if (!f) return -1;
    const int n = snprintf(want, sizeof want, "%lx-", (unsigned long)(uintptr_t)p);
    while (kb < 0 && fgets(line, sizeof line, f)) {
        if (!strncmp(line, want, (size_t)n)) here = true;
        else if (here) (void)sscanf(line, "Rss: %ld kB", &kb);
    }
    fclose(f);
    return kb;
}

static void bytes_are_there(void **state)
{
    (void)state;
    const size_t sizes[] = { 0, 1, 4095, 4096, 4097, 100000 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        qn_map m;
        write_file(sizes[i]);
        assert_int_equal(qn_map_open(&m, path, NULL), QN_OK);
        assert_int_equal(m.n_bytes, sizes[i]);
        assert_non_null(m.ptr);
        for (size_t k = 0; k < m.n_bytes; k++) assert_int_equal(m.ptr[k], k % 251);
        qn_map_close(&m);
        assert_null(m.ptr);
        qn_map_close(&m);
    }
}

static void reads_are_told_from_signals(void **state)
{
    (void)state;
    qn_map m;
    qn_err err;
    uint8_t bytes[16];
    write_file(100000);
    assert_int_equal(qn_map_open(&m, path, NULL), QN_OK);
    assert_true(qn_map_is_file(&m, path));
    assert_false(qn_map_is_file(&m, "/tmp"));
    assert_false(qn_map_is_file(&m, "/nonexistent"));
    assert_int_equal(qn_map_read(&m, 99984, sizeof bytes, bytes, &err), QN_OK);
    for (size_t i = 0; i < sizeof bytes; i++) assert_int_equal(bytes[i], (99984 + i) % 251);
    assert_int_equal(truncate(path, 50000), 0);
    assert_int_equal(qn_map_read(&m, 99984, sizeof bytes, bytes, &err), QN_ERR_IO);
    assert_non_null(strstr(err.text, "cut short"));
    qn_map_close(&m);
}

static void hints_at_any_range(void **state)
{
    (void)state;
    qn_map m;
    const size_t n = 3 * 4096 + 5, at[] = { 0, 1, 4095, 4096, 8191, 3 * 4096, 3 * 4096 + 5, 3 * 4096 + 6, SIZE_MAX };
    write_file(n);
    assert_int_equal(qn_map_open(&m, path, NULL), QN_OK);
    const uint64_t before = sum(&m);
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
            qn_map_advise(&m, at[i], at[k], QN_MAP_DROP);
            qn_map_advise(&m, at[i], at[k], QN_MAP_EXPECT);
            assert_int_equal(sum(&m), before);
        }
    qn_map_close(&m);
}

static void dropped_pages_take_no_memory(void **state)
{
    (void)state;
    const size_t n = (size_t)4 << 20;
    qn_map m;
    write_file(n);
    assert_int_equal(qn_map_open(&m, path, NULL), QN_OK);
    const uint64_t before = sum(&m);
    const long all = resident_kb(m.ptr);
    if (all < 4096) { /* also where pages are larger than this test thinks */
        qn_map_close(&m);
        skip();
    }
    qn_map_advise(&m, 0, n / 2, QN_MAP_DROP);
    assert_true(resident_kb(m.ptr) <= all / 2);
    qn_map_advise(&m, n / 2, n / 2, QN_MAP_DROP);
    assert_int_equal(resident_kb(m.ptr), 0);
    assert_int_equal(sum(&m), before);
    qn_map_close(&m);
}

static void no_memory(void **state)
{
    (void)state;
    qn_map m;
    qn_err err;
    write_file(10);
    test_fail_alloc_at(1);
    const qn_status s = qn_map_open(&m, path, &err);
    test_fail_alloc_at(0);
    assert_int_equal(s, QN_ERR_NOMEM);
    assert_null(m.ptr);
    assert_non_null(strstr(err.text, "cannot be mapped"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_there),
        cmocka_unit_test(reads_are_told_from_signals),
        cmocka_unit_test(hints_at_any_range),
        cmocka_unit_test(dropped_pages_take_no_memory),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}

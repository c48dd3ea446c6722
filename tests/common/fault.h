/*
 * Failing allocations. Every C test is linked so that malloc, calloc, realloc, aligned_alloc, mmap and pthread_create of the library and of
 * the test itself pass through here (the linker's --wrap); nothing fails until a test asks for it.
 *
 *     for (long n = 1;; n++) {
 *         test_fail_alloc_at(n);
 *         const qn_status s = qn_file_open(&f, path, &err);
 *         const bool failed = test_alloc_has_failed();
 *         test_fail_alloc_at(0);
 *         if (!failed) break;                       // the whole of it needs fewer than n allocations
 *         assert_int_equal(s, QN_ERR_NOMEM);
 *     }
 */
#ifndef QN_TEST_FAULT_H
#define QN_TEST_FAULT_H

#include <stdbool.h>

/** The n-th allocation from now on, counted over all threads, fails with ENOMEM, and only that one. 0: none. */
void test_fail_alloc_at(long n);
/** Has one failed since the last test_fail_alloc_at? */
bool test_alloc_has_failed(void);
/** Allocations since the last test_fail_alloc_at. */
long test_alloc_count(void);

#endif

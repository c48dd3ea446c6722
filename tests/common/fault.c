#include "tests/common/fault.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/types.h>

static atomic_long count, fail_at;
static atomic_bool has_failed;

void test_fail_alloc_at(long n)
{
    atomic_store(&fail_at, n);
    atomic_store(&count, 0);
    atomic_store(&has_failed, false);
}

bool test_alloc_has_failed(void)
{
    return atomic_load(&has_failed);
}

long test_alloc_count(void)
{
    return atomic_load(&count);
}

static bool must_fail(void)
{
    if (atomic_fetch_add(&count, 1) + 1 != atomic_load(&fail_at)) return false;
    atomic_store(&has_failed, true);
    errno = ENOMEM;
    return true;
}

/* The linker turns a call of malloc into one of __wrap_malloc, and __real_malloc into malloc. */
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
void *__real_aligned_alloc(size_t alignment, size_t n);
int __real_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*run)(void *), void *arg);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t n, int prot, int flags, int fd, off_t offset);
void *__wrap_aligned_alloc(size_t alignment, size_t n);
int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*run)(void *), void *arg);

void *__wrap_malloc(size_t n)
{
    return must_fail() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return must_fail() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    return must_fail() ? NULL : __real_realloc(p, n);
}

void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    return must_fail() ? MAP_FAILED : __real_mmap(at, n, prot, flags, fd, offset);
}

/* The name that mmap has in files compiled with _FILE_OFFSET_BITS=64; on 64-bit systems the same function. */
void *__wrap_mmap64(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    return __wrap_mmap(at, n, prot, flags, fd, offset);
}

void *__wrap_aligned_alloc(size_t alignment, size_t n)
{
    return must_fail() ? NULL : __real_aligned_alloc(alignment, n);
}

int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    return must_fail() ? EAGAIN : __real_pthread_create(id, attr, run, arg);
}

#include "src/base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

bool qn_size_mul(size_t a, size_t b, size_t *out)
{
    if (b && a > SIZE_MAX / b) return false;
    *out = a * b;
    return true;
}

bool qn_size_add(size_t a, size_t b, size_t *out)
{
    if (a > SIZE_MAX - b) return false;
    *out = a + b;
    return true;
}

void *qn_new(size_t n, size_t size)
{
    return calloc(n ? n : 1, size ? size : 1);
}

bool qn_grow(void **items, size_t *cap, size_t n_want, size_t size)
{
    if (n_want <= *cap) return true;
    size_t n = *cap > SIZE_MAX / 2 ? n_want : *cap * 2, bytes;
    if (n < n_want) n = n_want;
    if (n < 8) n = 8;
    if (!qn_size_mul(n, size, &bytes)) return false;
    void *p = realloc(*items, bytes);
    if (!p) return false;
    *items = p;
    *cap = n;
    return true;
}

void qn_buf_add(qn_buf *b, const void *bytes, size_t n)
{
    size_t want;
    if (b->failed) return;
    if (!qn_size_add(b->len, n, &want) || !qn_size_add(want, 1, &want) || !qn_grow((void **)&b->ptr, &b->cap, want, 1)) {
        b->failed = true;
        return;
    }
    if (n) memcpy(b->ptr + b->len, bytes, n);
    b->len += n;
    b->ptr[b->len] = 0;
}

void qn_buf_free(qn_buf *b)
{
    free(b->ptr);
    *b = (qn_buf){ 0 };
}

#define HUGE_PAGE ((size_t)2 << 20)

qn_status qn_pages_new(void **out, size_t n_bytes, const char *what, qn_err *err)
{
    *out = NULL;
    if (n_bytes == 0) n_bytes = 1;
    void *p = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return qn_fail(err, QN_ERR_NOMEM, "no memory for %s: %.1f MB are needed", what, (double)n_bytes / 1e6);
#ifdef MADV_HUGEPAGE
    if (n_bytes >= HUGE_PAGE) (void)madvise(p, n_bytes, MADV_HUGEPAGE); /* advice: a refusal costs speed alone */
#endif
    *out = p;
    return QN_OK;
}

void qn_pages_free(void **pages, size_t n_bytes)
{
    if (*pages) munmap(*pages, n_bytes ? n_bytes : 1);
    *pages = NULL;
}

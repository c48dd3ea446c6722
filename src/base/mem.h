/* Memory with checked sizes, growing buffers, and the huge-page arena that weights live in. */
#ifndef QN_BASE_MEM_H
#define QN_BASE_MEM_H

#include "src/base/err.h"

/** Checked arithmetic: false when the result does not fit. */
bool qn_size_mul(size_t a, size_t b, size_t *out);
bool qn_size_add(size_t a, size_t b, size_t *out);

/** [n] items of `size` bytes, zeroed; NULL when the product does not fit or memory is short. n = 0 gives a unique pointer. Free
 * with free(). */
void *qn_new(size_t n, size_t size);
/** Grow [n] items to at least n_want (doubling), keeping the contents; false leaves everything as it was. */
bool qn_grow(void **items, size_t *cap, size_t n_want, size_t size);

/** Growing bytes. `ptr` is NULL when nothing was ever added, else ends in a NUL that len leaves out. */
typedef struct qn_buf {
    char *ptr;
    size_t len, cap;
    bool failed; /* sticky: memory ran short; later calls do nothing */
} qn_buf;
void qn_buf_add(qn_buf *b, const void *bytes, size_t n);
void qn_buf_free(qn_buf *b);

/** Zeroed pages straight from the system, on huge pages where they can be had. Sizes are rounded up to pages. */
qn_status qn_pages_new(void **out, size_t n_bytes, const char *what, qn_err *err);
void qn_pages_free(void **pages, size_t n_bytes);

#endif

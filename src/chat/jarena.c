#include "src/chat/jarena.h"

#include "src/base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 16, CHUNK_BYTES = 64 << 10, LARGE_BYTES = 8 << 10 };

struct qn_jchunk {
    qn_jchunk *prev, *next;
    size_t n_bytes;
    size_t pad; /* keeps what follows on a 16-byte border */
};
_Static_assert(sizeof(qn_jchunk) % ALIGN == 0, "pieces begin behind the header");

void qn_jarena_init(qn_jarena *a, size_t max_total)
{
    *a = (qn_jarena){ .max_total = max_total };
}

void qn_jarena_free(qn_jarena *a)
{
    for (qn_jchunk *c = a->chunks; c;) {
        qn_jchunk *next = c->next;
        free(c);
        c = next;
    }
    *a = (qn_jarena){ .max_total = a->max_total };
}

static void *refuse(qn_jarena *a, qn_status why)
{
    a->fail = why;
    return NULL;
}

static void link_chunk(qn_jarena *a, qn_jchunk *c)
{
    c->prev = NULL;
    c->next = a->chunks;
    if (a->chunks) a->chunks->prev = c;
    a->chunks = c;
}

static char *new_chunk(qn_jarena *a, size_t n)
{
    size_t bytes;
    if (!qn_size_add(n, sizeof(qn_jchunk), &bytes) || bytes > a->max_total || a->total > a->max_total - bytes) return refuse(a, QN_ERR_LIMIT);
    qn_jchunk *c = malloc(bytes);
    if (!c) return refuse(a, QN_ERR_NOMEM);
    c->n_bytes = bytes;
    link_chunk(a, c);
    a->total += bytes;
    return (char *)(c + 1);
}

void *qn_jarena_raw(qn_jarena *a, size_t n)
{
    if (n > SIZE_MAX / 2) return refuse(a, QN_ERR_LIMIT);
    n = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (n >= LARGE_BYTES) return new_chunk(a, n);
    if (!a->at || (size_t)(a->end - a->at) < n) {
        char *p = new_chunk(a, CHUNK_BYTES);
        if (!p) return NULL;
        a->at = p;
        a->end = p + CHUNK_BYTES;
    }
    void *p = a->at;
    a->at += n;
    return p;
}

void *qn_jarena_new(qn_jarena *a, size_t n)
{
    void *p = qn_jarena_raw(a, n);
    if (p) memset(p, 0, n);
    return p;
}

void *qn_jarena_grow(qn_jarena *a, void *p, size_t n_old, size_t n_new)
{
    if (((n_old + ALIGN - 1) & ~(size_t)(ALIGN - 1)) < LARGE_BYTES || !p) {
        void *q = qn_jarena_raw(a, n_new);
        if (q && p) memcpy(q, p, n_old < n_new ? n_old : n_new);
        return q;
    }
    if (n_new > SIZE_MAX / 2) return refuse(a, QN_ERR_LIMIT);
    qn_jchunk *c = (qn_jchunk *)p - 1;
    const size_t bytes = n_new + sizeof *c, total = a->total - c->n_bytes;
    if (bytes > a->max_total || total > a->max_total - bytes) return refuse(a, QN_ERR_LIMIT);
    qn_jchunk *q = realloc(c, bytes);
    if (!q) return refuse(a, QN_ERR_NOMEM);
    a->total = total + bytes;
    q->n_bytes = bytes;
    if (q->prev) q->prev->next = q;
    else a->chunks = q;
    if (q->next) q->next->prev = q;
    return q + 1;
}

#include "src/format/names.h"

#include "src/base/mem.h"

#include <stdlib.h>
#include <string.h>

typedef struct qn_names_entry {
    uint64_t hash;
    const qn_str *name;
} qn_names_entry;

/* FNV-1a, 64 bits. Collisions, crafted ones included, only cost a comparison of names. */
static uint64_t hash_of(qn_str s)
{
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < s.len; i++) h = (h ^ (uint8_t)s.ptr[i]) * 0x100000001b3;
    return h;
}

static int by_hash_and_name(const void *pa, const void *pb)
{
    const qn_names_entry *a = pa, *b = pb;
    if (a->hash != b->hash) return a->hash < b->hash ? -1 : 1;
    if (a->name->len != b->name->len) return a->name->len < b->name->len ? -1 : 1;
    return memcmp(a->name->ptr, b->name->ptr, a->name->len);
}

static int64_t index_of(const qn_names *names, const qn_names_entry *e)
{
    return (int64_t)((size_t)((const uint8_t *)e->name - names->items) / names->stride);
}

qn_status qn_names_open(qn_names *out, const void *items, size_t stride, int64_t n, int64_t *twin)
{
    *out = (qn_names){ NULL, items, stride, n };
    *twin = -1;
    qn_names_entry *e = qn_new((size_t)n, sizeof *e);
    if (!e) return QN_ERR_NOMEM;
    for (int64_t i = 0; i < n; i++) {
        e[i].name = (const qn_str *)(const void *)(out->items + (size_t)i * stride);
        e[i].hash = hash_of(*e[i].name);
    }
    qsort(e, (size_t)n, sizeof *e, by_hash_and_name);
    out->sorted = e;
    for (int64_t i = 1; i < n; i++) {
        if (by_hash_and_name(&e[i - 1], &e[i])) continue;
        *twin = index_of(out, &e[i]);
        qn_names_close(out);
        return QN_ERR_FORMAT;
    }
    return QN_OK;
}

void qn_names_close(qn_names *names)
{
    free(names->sorted);
    *names = (qn_names){ 0 };
}

int64_t qn_names_find(const qn_names *names, qn_str name)
{
    if (!names->n) return -1;
    const qn_names_entry want = { hash_of(name), &name };
    const qn_names_entry *e = bsearch(&want, names->sorted, (size_t)names->n, sizeof *e, by_hash_and_name);
    return e ? index_of(names, e) : -1;
}

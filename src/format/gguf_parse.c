/*
 * One GGUF file, versions 2 and 3:
 *
 *    "GGUF" | version u32 | n_tensors u64 | n_keys u64 |  n_keys times     key string | type u32 | value
 *                                                      |  n_tensors times  name string | n_dims u32 | dims u64 ... | type u32 | offset u64
 *    padding to general.alignment (default 32) | tensor data, each offset counted from here and a multiple of the alignment
 *
 * A string is a u64 length and its bytes; an array is an element type u32, a count u64 and the elements.
 */
#include "src/format/gguf.h"

#include "src/base/mem.h"
#include "src/format/value.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_DIMS = 4,
    MAX_KEY_BYTES = 65535,     /* the format's own limit                                                   */
    MIN_KEY_BYTES = 8 + 1 + 4 + 1,    /* encoded: length, one letter, type, one byte                        */
    MIN_TENSOR_BYTES = 8 + 1 + 4 + 4 + 8, /* encoded: length, one letter, n_dims of 0, type, offset         */
    DEFAULT_ALIGNMENT = 32,
};

/* ---- header ---- */

static qn_status check_magic(const qn_gguf *g, qn_err *err)
{
    if (g->n_bytes == 0) return qn_fail(err, QN_ERR_FORMAT, "the file is empty");
    const char *look = qn_sniff(g->bytes, g->n_bytes);
    if (g->n_bytes >= 4 && !memcmp(g->bytes, "GGUF", 4)) return QN_OK;
    if (look) return qn_fail(err, QN_ERR_FORMAT, "this is not a GGUF file; it looks like %s", look);
    if (g->n_bytes < 4) return qn_fail(err, QN_ERR_FORMAT, "this is not a GGUF file: it has %zu bytes", g->n_bytes);
    return qn_fail(err, QN_ERR_FORMAT, "this is not a GGUF file: it begins with the bytes %02x %02x %02x %02x", g->bytes[0], g->bytes[1],
                   g->bytes[2], g->bytes[3]);
}

static qn_status check_version(qn_gguf *g, uint32_t version, qn_err *err)
{
    if (version == 1) return qn_fail(err, QN_ERR_UNSUPPORTED, "GGUF version 1 is not supported; convert the model again from the original");
    if (version && version % 65536 == 0)
        return qn_fail(err, QN_ERR_UNSUPPORTED, "this is a big-endian GGUF, which quern does not read");
    if (version != 2 && version != 3)
        return qn_fail(err, QN_ERR_UNSUPPORTED, "GGUF version %u is not supported; quern knows 2 and 3", version);
    g->version = (int32_t)version;
    return QN_OK;
}

static qn_status read_header(qn_gguf *g, qn_cursor *c, uint64_t *n_tensors, uint64_t *n_keys, qn_err *err)
{
    QN_TRY(check_magic(g, err));
    qn_cursor_take(c, 4);
    const uint32_t version = qn_cursor_u32(c);
    if (c->failed) return qn_fail(err, QN_ERR_FORMAT, "the file is cut short inside its header");
    QN_TRY(check_version(g, version, err));
    *n_tensors = qn_cursor_u64(c);
    *n_keys = qn_cursor_u64(c);
    if (c->failed) return qn_fail(err, QN_ERR_FORMAT, "the file is cut short inside its header");
    const size_t left = qn_cursor_left(c);
    if (*n_keys > left / MIN_KEY_BYTES)
        return qn_fail(err, QN_ERR_FORMAT, "the header promises %llu metadata keys, for which %zu bytes are too few",
                       (unsigned long long)*n_keys, left);
    if (*n_tensors > left / MIN_TENSOR_BYTES)
        return qn_fail(err, QN_ERR_FORMAT, "the header promises %llu tensors, for which %zu bytes are too few",
                       (unsigned long long)*n_tensors, left);
    return QN_OK;
}

/* ---- metadata ---- */

static qn_status read_name(qn_cursor *c, const char *what, size_t i, qn_str *out, qn_err *err)
{
    const uint64_t len = qn_cursor_u64(c);
    const size_t left = qn_cursor_left(c);
    if (c->failed) return qn_fail(err, QN_ERR_FORMAT, "the file is cut short before %s %zu", what, i);
    if (len == 0) return qn_fail(err, QN_ERR_FORMAT, "%s %zu has an empty name", what, i);
    out->ptr = (const char *)qn_cursor_take(c, len);
    out->len = (size_t)len;
    if (c->failed)
        return qn_fail(err, QN_ERR_FORMAT, "the name of %s %zu has %llu bytes, where the file has %zu left", what, i,
                       (unsigned long long)len, left);
    if (len > MAX_KEY_BYTES)
        return qn_fail(err, QN_ERR_FORMAT, "the name of %s %zu has %llu bytes; %d are allowed", what, i, (unsigned long long)len,
                       MAX_KEY_BYTES);
    return QN_OK;
}

static qn_status read_key(qn_gguf *g, qn_cursor *c, qn_err *err)
{
    qn_gguf_key key;
    QN_TRY(read_name(c, "metadata key", g->n_keys, &key.name, err));
    const uint32_t type = qn_cursor_u32(c);
    if (c->failed) return qn_fail(err, QN_ERR_FORMAT, "the file is cut short after key '%.*s'", QN_STR_ARG(key.name));
    const qn_status s = qn_value_read(c, type, &key.value, err);
    if (s != QN_OK) return qn_fail_in(err, s, "key '%.*s'", QN_STR_ARG(key.name));
    if (!qn_grow((void **)&g->keys, &g->cap_keys, g->n_keys + 1, sizeof *g->keys))
        return qn_fail(err, QN_ERR_NOMEM, "no memory for %zu metadata keys", g->n_keys + 1);
    g->keys[g->n_keys++] = key;
    return QN_OK;
}

static qn_status index_keys(qn_gguf *g, qn_err *err)
{
    int64_t twin;
    const qn_status s = qn_names_open(&g->key_names, g->keys, sizeof *g->keys, (int64_t)g->n_keys, &twin);
    if (s == QN_ERR_FORMAT) return qn_fail(err, s, "key '%.*s' is there twice", QN_STR_ARG(g->keys[twin].name));
    if (s != QN_OK) return qn_fail(err, s, "no memory for the index of %zu metadata keys", g->n_keys);
    return QN_OK;
}

static qn_status read_alignment(qn_gguf *g, qn_err *err)
{
    qn_value v;
    g->alignment = DEFAULT_ALIGNMENT;
    if (!qn_gguf_find(g, QN_LIT("general.alignment"), &v)) return QN_OK;
    if (v.type != QN_V_U32)
        return qn_fail(err, QN_ERR_FORMAT, "key 'general.alignment' has type %s; it has to be u32", qn_vtype_name(v.type));
    g->alignment = qn_load_le(v.data, 4);
    if (g->alignment == 0 || (g->alignment & (g->alignment - 1)))
        return qn_fail(err, QN_ERR_FORMAT, "key 'general.alignment' is %llu; it has to be a power of two",
                       (unsigned long long)g->alignment);
    return QN_OK;
}

/* ---- tensors ---- */

static qn_status read_dims(qn_cursor *c, qn_tensor_info *info, qn_err *err)
{
    const uint32_t n = qn_cursor_u32(c);
    if (!c->failed && n > MAX_DIMS)
        return qn_fail(err, QN_ERR_FORMAT, "tensor '%.*s' has %u dimensions; at most 4 are allowed", QN_STR_ARG(info->name), n);
    info->n_dims = n ? (int32_t)n : 1; /* a scalar is written with none */
    for (int i = 0; i < MAX_DIMS; i++) {
        const uint64_t d = i < (int)n ? qn_cursor_u64(c) : 1;
        if (c->failed)
            return qn_fail(err, QN_ERR_FORMAT, "the file is cut short inside the entry of tensor '%.*s'", QN_STR_ARG(info->name));
        if (d == 0 || d > INT64_MAX)
            return qn_fail(err, QN_ERR_FORMAT, "tensor '%.*s' has %llu elements in dimension %d", QN_STR_ARG(info->name),
                           (unsigned long long)d, i);
        info->dims[i] = (int64_t)d;
    }
    return QN_OK;
}

/* Sizes that do not depend on where the tensor lies: every product checked. */
static qn_status size_tensor(qn_gguf_tensor *t, qn_err *err)
{
    qn_tensor_info *info = &t->info;
    t->fmt = qn_fmt_by_id(info->type);
    if (!t->fmt)
        return qn_fail(err, QN_ERR_UNSUPPORTED, "tensor '%.*s' has type %u, a format that quern does not know", QN_STR_ARG(info->name),
                       (unsigned)info->type);
    info->type_name = t->fmt->name;
    if (info->dims[0] % t->fmt->block)
        return qn_fail(err, QN_ERR_FORMAT, "tensor '%.*s' has rows of %lld elements, which is not a multiple of the %d in a block of %s",
                       QN_STR_ARG(info->name), (long long)info->dims[0], t->fmt->block, t->fmt->name);
    size_t n_rows = 1, bytes;
    bool fits = qn_fmt_row_bytes(t->fmt, info->dims[0], &t->row_bytes);
    for (int i = 1; i < MAX_DIMS; i++) fits = fits && qn_size_mul(n_rows, (size_t)info->dims[i], &n_rows);
    fits = fits && n_rows <= INT64_MAX / (uint64_t)info->dims[0] && qn_size_mul(n_rows, t->row_bytes, &bytes);
    if (!fits)
        return qn_fail(err, QN_ERR_FORMAT, "tensor '%.*s' is larger than any file: %lld x %lld x %lld x %lld", QN_STR_ARG(info->name),
                       (long long)info->dims[0], (long long)info->dims[1], (long long)info->dims[2], (long long)info->dims[3]);
    t->n_rows = (int64_t)n_rows;
    info->n_bytes = bytes;
    return QN_OK;
}

static qn_status read_tensor(qn_gguf *g, qn_cursor *c, qn_err *err)
{
    qn_gguf_tensor t = { 0 };
    QN_TRY(read_name(c, "tensor", g->n_tensors, &t.info.name, err));
    QN_TRY(read_dims(c, &t.info, err));
    t.info.type = (int32_t)qn_cursor_u32(c);
    t.info.offset = qn_cursor_u64(c); /* from the start of the data, until place_tensor */
    if (c->failed)
        return qn_fail(err, QN_ERR_FORMAT, "the file is cut short inside the entry of tensor '%.*s'", QN_STR_ARG(t.info.name));
    QN_TRY(size_tensor(&t, err));
    if (t.info.offset % g->alignment)
        return qn_fail(err, QN_ERR_FORMAT, "tensor '%.*s' lies at offset %llu, which is not a multiple of the alignment %llu",
                       QN_STR_ARG(t.info.name), (unsigned long long)t.info.offset, (unsigned long long)g->alignment);
    if (!qn_grow((void **)&g->tensors, &g->cap_tensors, g->n_tensors + 1, sizeof *g->tensors))
        return qn_fail(err, QN_ERR_NOMEM, "no memory for %zu tensors", g->n_tensors + 1);
    g->tensors[g->n_tensors++] = t;
    return QN_OK;
}

/* The data begins at `begin` (which may lie past the end). */
static qn_status place_tensor(const qn_gguf *g, uint64_t begin, qn_gguf_tensor *t, qn_err *err)
{
    const uint64_t have = g->n_bytes > begin ? g->n_bytes - begin : 0;
    if (t->info.offset > have || t->info.n_bytes > have - t->info.offset)
        return qn_fail(err, QN_ERR_FORMAT,
                       "tensor '%.*s' (%llu bytes at offset %llu of the data) ends past the end of the file, which has %zu bytes: it is "
                       "cut short",
                       QN_STR_ARG(t->info.name), (unsigned long long)t->info.n_bytes, (unsigned long long)t->info.offset, g->n_bytes);
    t->info.offset += begin;
    t->bytes = g->bytes + t->info.offset;
    return QN_OK;
}

static int by_offset(const void *pa, const void *pb)
{
    const qn_gguf_tensor *a = *(const qn_gguf_tensor *const *)pa, *b = *(const qn_gguf_tensor *const *)pb;
    return a->info.offset < b->info.offset ? -1 : a->info.offset > b->info.offset;
}

/* Shared bytes would let a small file ask for any amount of memory. */
static qn_status check_overlap(const qn_gguf *g, qn_err *err)
{
    const qn_gguf_tensor **t = qn_new(g->n_tensors, sizeof *t);
    if (!t) return qn_fail(err, QN_ERR_NOMEM, "no memory to check %zu tensors", g->n_tensors);
    for (size_t i = 0; i < g->n_tensors; i++) t[i] = &g->tensors[i];
    qsort(t, g->n_tensors, sizeof *t, by_offset);
    qn_status s = QN_OK;
    for (size_t i = 1; i < g->n_tensors && s == QN_OK; i++)
        if (t[i - 1]->info.offset + t[i - 1]->info.n_bytes > t[i]->info.offset)
            s = qn_fail(err, QN_ERR_FORMAT, "tensors '%.*s' and '%.*s' lie over each other", QN_STR_ARG(t[i - 1]->info.name),
                        QN_STR_ARG(t[i]->info.name));
    free(t);
    return s;
}

/* ---- all ---- */

qn_status qn_gguf_parse(qn_gguf *g, qn_err *err)
{
    qn_cursor c = qn_cursor_of(g->bytes, g->n_bytes);
    uint64_t n_tensors = 0, n_keys = 0;
    QN_TRY(read_header(g, &c, &n_tensors, &n_keys, err));
    while (g->n_keys < n_keys) QN_TRY(read_key(g, &c, err));
    QN_TRY(index_keys(g, err));
    QN_TRY(read_alignment(g, err));
    while (g->n_tensors < n_tensors) QN_TRY(read_tensor(g, &c, err));
    const uint64_t head = (uint64_t)(c.at - g->bytes);
    const uint64_t begin = (head + g->alignment - 1) / g->alignment * g->alignment; /* head < 2^63, alignment < 2^32 */
    for (size_t i = 0; i < g->n_tensors; i++) QN_TRY(place_tensor(g, begin, &g->tensors[i], err));
    return check_overlap(g, err);
}

/* The end of a long path tells more than its beginning. */
static qn_status in_file(qn_err *err, qn_status s, const char *path)
{
    enum { SHOWN = 200 };
    const size_t n = strlen(path);
    return n > SHOWN ? qn_fail_in(err, s, "...%s", path + n - SHOWN) : qn_fail_in(err, s, "%s", path);
}

qn_status qn_gguf_open(qn_gguf *g, const char *path, qn_err *err)
{
    *g = (qn_gguf){ 0 };
    qn_status s = qn_map_open(&g->map, path, err);
    if (s == QN_OK) {
        g->bytes = g->map.ptr;
        g->n_bytes = g->map.n_bytes;
        s = qn_gguf_parse(g, err);
    }
    if (s == QN_OK) return QN_OK;
    qn_gguf_close(g);
    return in_file(err, s, path);
}

void qn_gguf_close(qn_gguf *g)
{
    qn_names_close(&g->key_names);
    free(g->keys);
    free(g->tensors);
    qn_map_close(&g->map);
    *g = (qn_gguf){ 0 };
}

bool qn_gguf_find(const qn_gguf *g, qn_str key, qn_value *out)
{
    const int64_t i = qn_names_find(&g->key_names, key);
    if (i >= 0) *out = g->keys[i].value;
    return i >= 0;
}

/* Reading importance data: every count and length is checked against the bytes that are there. */
#include "src/base/cursor.h"
#include "src/base/map.h"
#include "src/base/mem.h"
#include "src/convert/imatrix.h"
#include "src/format/gguf.h"
#include "src/format/keys.h"

#include <stdlib.h>
#include <string.h>

enum { F32 = 0 };

/* ---- GGUF: tensors NAME.in_sum2 [n_cols, n_mats] and NAME.counts [1, n_mats] ---- */

static const qn_str sums_tail = { ".in_sum2", 8 }, counts_tail = { ".counts", 7 };

static bool ends_in(qn_str s, qn_str tail)
{
    return s.len > tail.len && !memcmp(s.ptr + s.len - tail.len, tail.ptr, tail.len);
}

/* The tensor with the other tail instead of this one's. */
static int64_t partner_of(const qn_file *f, const qn_tensor_info *t, qn_str tail, qn_str other)
{
    qn_buf name = { 0 };
    qn_buf_add(&name, t->name.ptr, t->name.len - tail.len);
    qn_buf_add(&name, other.ptr, other.len);
    const int64_t i = name.failed ? -1 : qn_file_tensor_find(f, name.ptr);
    qn_buf_free(&name);
    return i;
}

static qn_status read_pair(qn_imatrix *m, const qn_file *f, int64_t i_sums, qn_err *err)
{
    qn_tensor_info t, c;
    (void)qn_file_tensor_at(f, i_sums, &t);
    const int64_t i_counts = partner_of(f, &t, sums_tail, counts_tail);
    if (!qn_file_tensor_at(f, i_counts, &c)) return qn_fail(err, QN_ERR_FORMAT, "tensor %.*s has no counts beside it", QN_STR_ARG(t.name));
    if (t.type != F32 || c.type != F32)
        return qn_fail(err, QN_ERR_FORMAT, "tensor %.*s and its counts are %s and %s; both have to be F32", QN_STR_ARG(t.name), t.type_name, c.type_name);
    const int64_t n_mats = t.dims[1] * t.dims[2] * t.dims[3];
    if (c.dims[0] != 1 || c.dims[1] * c.dims[2] * c.dims[3] != n_mats)
        return qn_fail(err, QN_ERR_FORMAT, "tensor %.*s has the shape [%lld, %lld]; for %lld matrices it has to be [1, %lld]", QN_STR_ARG(c.name),
                       (long long)c.dims[0], (long long)c.dims[1], (long long)n_mats, (long long)n_mats);
    qn_imatrix_entry *e = qn_imatrix_add(m, (qn_str){ t.name.ptr, t.name.len - sums_tail.len }, t.dims[0], n_mats);
    if (!e) return qn_fail(err, QN_ERR_NOMEM, "no memory for tensor %.*s", QN_STR_ARG(t.name));
    QN_TRY(qn_file_rows_f32(f, i_sums, 0, n_mats, e->sum, err));
    return qn_file_rows_f32(f, i_counts, 0, n_mats, e->count, err);
}

static qn_status read_key_u32(const qn_file *f, const char *key, uint32_t *out, qn_err *err)
{
    int64_t v = 0;
    const qn_status s = qn_key_i64(f, key, NULL, 0, UINT32_MAX, &v, err);
    *out = (uint32_t)v;
    return s == QN_ERR_NOT_FOUND ? QN_OK : s;
}

static qn_status read_keys(qn_imatrix *m, const qn_file *f, qn_err *err)
{
    qn_str kind = { 0 }, name;
    qn_value texts, text;
    qn_status s = qn_key_str(f, "general.type", NULL, &kind, err);
    if (s != QN_OK && s != QN_ERR_NOT_FOUND) return s;
    if (s == QN_OK && !(kind.len == 7 && !memcmp(kind.ptr, "imatrix", 7)))
        return qn_fail(err, QN_ERR_FORMAT, "general.type is '%.*s'; importance data has 'imatrix'", QN_STR_ARG(kind));
    QN_TRY(read_key_u32(f, "imatrix.chunk_count", &m->n_chunks, err));
    QN_TRY(read_key_u32(f, "imatrix.chunk_size", &m->chunk_tokens, err));
    s = qn_key_array(f, "imatrix.datasets", NULL, QN_V_STRING, &texts, err);
    if (s != QN_OK) return s == QN_ERR_NOT_FOUND ? QN_OK : s;
    for (qn_value_iter it = qn_value_iterate(&texts); qn_value_next(&it, &text);)
        if (qn_value_as_str(&text, &name) == QN_OK) QN_TRY(qn_imatrix_add_dataset(m, name, err));
    return QN_OK;
}

static qn_status read_gguf(qn_imatrix *m, const qn_file *f, qn_err *err)
{
    qn_tensor_info t, sums;
    QN_TRY(read_keys(m, f, err));
    for (int64_t i = 0; qn_file_tensor_at(f, i, &t); i++) {
        if (ends_in(t.name, sums_tail)) QN_TRY(read_pair(m, f, i, err));
        else if (!ends_in(t.name, counts_tail))
            return qn_fail(err, QN_ERR_FORMAT, "a tensor %.*s, which is no importance data", QN_STR_ARG(t.name));
        else if (!qn_file_tensor_at(f, partner_of(f, &t, counts_tail, sums_tail), &sums))
            return qn_fail(err, QN_ERR_FORMAT, "tensor %.*s has no sums beside it", QN_STR_ARG(t.name));
    }
    return m->n ? QN_OK : qn_fail(err, QN_ERR_FORMAT, "the file holds no importance data");
}

/* ---- the older file ----
 *    i32 number of entries; each: i32 length, name, i32 chunks, i32 number of values, f32 values: mean of squares times chunks
 *    then, in most: i32 chunks, i32 length, name of the text
 */

static float load_f32(const uint8_t *p)
{
    const uint32_t u = (uint32_t)qn_load_le(p, 4);
    float x;
    memcpy(&x, &u, 4);
    return x;
}

static qn_status read_dat_entry(qn_imatrix *m, qn_cursor *c, uint32_t i, qn_err *err)
{
    const uint32_t len = qn_cursor_u32(c);
    const uint8_t *name = qn_cursor_take(c, len);
    const uint32_t n_chunks = qn_cursor_u32(c), n = qn_cursor_u32(c);
    const uint8_t *values = qn_cursor_take(c, (uint64_t)n * 4);
    if (!values || n == 0 || len == 0) return qn_fail(err, QN_ERR_FORMAT, "entry %u of the importance data is cut short or empty", i);
    qn_imatrix_entry *e = qn_imatrix_add(m, (qn_str){ (const char *)name, len }, n, 1);
    if (!e) return qn_fail(err, QN_ERR_NOMEM, "no memory for entry %u of the importance data", i);
    for (uint32_t k = 0; k < n; k++) e->sum[k] = load_f32(values + (size_t)k * 4);
    e->count[0] = n_chunks ? (float)n_chunks : 1; /* 0: values that were not multiplied */
    return QN_OK;
}

static qn_status read_dat(qn_imatrix *m, const void *bytes, size_t n, qn_err *err)
{
    enum { MIN_ENTRY = 12 };
    qn_cursor c = qn_cursor_of(bytes, n);
    const uint32_t n_entries = qn_cursor_u32(&c);
    if (n_entries == 0 || !qn_cursor_expect(&c, n_entries, MIN_ENTRY)) {
        const char *looks = qn_sniff(bytes, n);
        return qn_fail(err, QN_ERR_FORMAT, looks ? "this is %s, not importance data" : "this is no importance data (a GGUF file, or the older form)", looks);
    }
    for (uint32_t i = 0; i < n_entries; i++) QN_TRY(read_dat_entry(m, &c, i, err));
    if (qn_cursor_left(&c) == 0) return QN_OK;
    m->n_chunks = qn_cursor_u32(&c);
    const uint32_t len = qn_cursor_u32(&c);
    const uint8_t *text = qn_cursor_take(&c, len);
    if (!text || qn_cursor_left(&c)) return qn_fail(err, QN_ERR_FORMAT, "%zu bytes after the last entry are not the name of a text", n - 4);
    return qn_imatrix_add_dataset(m, (qn_str){ (const char *)text, len }, err);
}

/* ---- either ---- */

static qn_status read_any(qn_imatrix *m, const void *bytes, size_t n, qn_err *err)
{
    if (n < 4 || memcmp(bytes, "GGUF", 4) != 0) return read_dat(m, bytes, n, err);
    qn_file *f = NULL;
    QN_TRY(qn_file_open_memory(&f, bytes, n, err));
    const qn_status s = read_gguf(m, f, err);
    qn_file_close(&f);
    return s;
}

qn_status qn_imatrix_load_memory(qn_imatrix **out, const void *bytes, size_t n, qn_err *err)
{
    QN_TRY(qn_imatrix_new(out, err));
    qn_status s = read_any(*out, bytes, n, err);
    if (s == QN_OK) s = qn_imatrix_finish(*out, err);
    if (s != QN_OK) qn_imatrix_close(out);
    return s;
}

qn_status qn_imatrix_load(qn_imatrix **out, const char *path, qn_err *err)
{
    qn_map map;
    *out = NULL;
    qn_status s = qn_map_open(&map, path, err);
    if (s == QN_OK) s = qn_imatrix_load_memory(out, map.ptr, map.n_bytes, err);
    qn_map_close(&map);
    return s == QN_OK ? s : qn_fail_in(err, s, "%.300s", path);
}

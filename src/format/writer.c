#define _FILE_OFFSET_BITS 64 /* files above 2 GiB on 32-bit systems too */

#include "src/format/writer.h"

#include "quant/quant.h"
#include "src/base/mem.h"
#include "src/format/names.h"
#include "src/format/value.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { DEFAULT_ALIGNMENT = 32, MAX_NAME_BYTES = 65535, MAX_DIMS = 4 };

typedef struct name_at {
    size_t offset, len; /* in qn_writer.keys or .tensors, which move while they grow */
} name_at;

typedef struct out_tensor {
    const uint8_t *bytes; /* borrowed, or NULL: streamed or placed */
    size_t n_bytes;
    uint64_t offset;      /* in the data */
} out_tensor;

struct qn_writer {
    char *path, *part; /* the final name and the temporary one */
    int fd;            /* -1: closed */
    uint32_t alignment;
    qn_buf keys, tensors; /* encoded entries */
    name_at *key_names, *tensor_names;
    size_t n_keys, cap_keys, n_names, cap_names;
    out_tensor *list; /* [n_tensors] */
    size_t n_tensors, cap_tensors;
    uint64_t data_bytes; /* announced so far, padding included */
    uint64_t head_bytes;  /* of header and padding, once they are written */
    bool has_begun;      /* the header is written */
    bool is_placed;      /* qn_writer_reserve was called */
    bool is_flushed;
    size_t i_tensor, done; /* tensor that is being written, bytes of it that are */
    qn_err err;          /* the first failure */
};

/* ---- output ---- */

/* A write failed; where the reason is a lack of room, how much that is. */
static qn_status write_failed(const qn_writer *w, int why, qn_err *err)
{
    struct statvfs st;
    if ((why != ENOSPC && why != EDQUOT && why != EFBIG) || fstatvfs(w->fd, &st))
        return qn_fail(err, QN_ERR_IO, "cannot write %.300s: %s", w->part, strerror(why));
    return qn_fail(err, QN_ERR_IO, "cannot write %.200s: %s; the file needs %llu bytes, and %llu are free", w->part, strerror(why),
                   (unsigned long long)qn_writer_file_bytes(w), (unsigned long long)st.f_bavail * st.f_frsize);
}

static qn_status put(qn_writer *w, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    while (n) {
        const size_t most = (size_t)1 << 30; /* systems write less than 2 GiB at a time */
        const ssize_t k = write(w->fd, p, n < most ? n : most);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return write_failed(w, k < 0 ? errno : ENOSPC, &w->err);
        p += k;
        n -= (size_t)k;
    }
    return QN_OK;
}

static qn_status put_padding(qn_writer *w, uint64_t n)
{
    static const uint8_t zeros[4096];
    for (; n > sizeof zeros; n -= sizeof zeros) QN_TRY(put(w, zeros, sizeof zeros));
    return put(w, zeros, (size_t)n);
}

/* Zeros up to the next multiple of the alignment after n bytes. */
static uint64_t padding_of(const qn_writer *w, uint64_t n)
{
    return (w->alignment - n % w->alignment) % w->alignment;
}

/* ---- open ---- */

static qn_status make_part(qn_writer *w)
{
    const size_t cap = strlen(w->path) + 64;
    w->part = qn_new(cap, 1);
    if (!w->part) return qn_fail(&w->err, QN_ERR_NOMEM, "no memory for a path");
    for (int i = 0; i < 100; i++) { /* names that earlier runs left behind are stepped over */
        snprintf(w->part, cap, "%s.part-%ld-%d", w->path, (long)getpid(), i);
        w->fd = open(w->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (w->fd >= 0) return QN_OK;
        if (errno != EEXIST) break;
    }
    const qn_status s = qn_fail(&w->err, QN_ERR_IO, "cannot create %.300s: %s", w->part, strerror(errno));
    free(w->part); /* not ours to remove */
    w->part = NULL;
    return s;
}

static qn_status set_up(qn_writer *w, const char *path, uint32_t alignment)
{
    struct stat st;
    const uint32_t most = (uint32_t)1 << 30;
    w->fd = -1;
    w->alignment = alignment;
    if (alignment == 0 || (alignment & (alignment - 1)) || alignment > most)
        return qn_fail(&w->err, QN_ERR_ARG, "alignment %u is not a power of two up to 2^30", alignment);
    if (path && !*path) return qn_fail(&w->err, QN_ERR_ARG, "the name of the file to write is empty");
    if (path && stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return qn_fail(&w->err, QN_ERR_IO, "%.300s is there and is not a regular file", path);
    w->path = qn_new(path ? strlen(path) + 1 : 1, 1);
    if (!w->path) return qn_fail(&w->err, QN_ERR_NOMEM, "no memory for a path");
    if (path) {
        memcpy(w->path, path, strlen(path));
        QN_TRY(make_part(w));
    }
    return alignment == DEFAULT_ALIGNMENT ? QN_OK : qn_writer_key_u32(w, "general.alignment", alignment);
}

qn_status qn_writer_open(qn_writer **out, const char *path, uint32_t alignment, qn_err *err)
{
    *out = NULL;
    qn_writer *w = qn_new(1, sizeof *w);
    if (!w) return qn_fail(err, QN_ERR_NOMEM, "no memory for a writer");
    const qn_status s = set_up(w, path, alignment);
    if (s != QN_OK) {
        if (err) *err = w->err;
        qn_writer_abandon(&w);
        return s;
    }
    *out = w;
    return QN_OK;
}

/* ---- keys ---- */

static void add_le(qn_buf *b, uint64_t v, unsigned n)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < n; i++) bytes[i] = (uint8_t)(v >> (8 * i));
    qn_buf_add(b, bytes, n);
}

static void add_str(qn_buf *b, qn_str s)
{
    add_le(b, s.len, 8);
    qn_buf_add(b, s.ptr, s.len);
}

static qn_status add_name(qn_writer *w, qn_buf *b, name_at **names, size_t *n, size_t *cap, qn_str name)
{
    if (w->err.status) return w->err.status;
    if (w->has_begun) return qn_fail(&w->err, QN_ERR_ARG, "'%.*s' comes after the first tensor data", QN_STR_ARG(name));
    if (name.len == 0 || name.len > MAX_NAME_BYTES)
        return qn_fail(&w->err, QN_ERR_ARG, "the name '%.*s' has %zu bytes; 1 to %d are allowed", QN_STR_ARG(name), name.len,
                       MAX_NAME_BYTES);
    if (!qn_grow((void **)names, cap, *n + 1, sizeof **names))
        return qn_fail(&w->err, QN_ERR_NOMEM, "no memory for '%.*s'", QN_STR_ARG(name));
    (*names)[(*n)++] = (name_at){ b->len + 8, name.len };
    add_str(b, name);
    return QN_OK;
}

static qn_status add_key(qn_writer *w, qn_str key, qn_vtype type)
{
    QN_TRY(add_name(w, &w->keys, &w->key_names, &w->n_keys, &w->cap_keys, key));
    add_le(&w->keys, (uint64_t)type, 4);
    return QN_OK;
}

static qn_status end_key(qn_writer *w, qn_str key)
{
    if (w->keys.failed) return qn_fail(&w->err, QN_ERR_NOMEM, "no memory for key '%.*s'", QN_STR_ARG(key));
    return QN_OK;
}

static qn_str str_of(const char *s)
{
    return (qn_str){ s, strlen(s) };
}

static qn_status fixed_bytes(qn_writer *w, const char *key, qn_vtype type, size_t *out)
{
    const int n = qn_vtype_bytes((uint32_t)type);
    if (w->err.status) return w->err.status;
    if (n <= 0) return qn_fail(&w->err, QN_ERR_ARG, "key '%.100s': %s is not a type of fixed size", key, qn_vtype_name(type));
    *out = (size_t)n;
    return QN_OK;
}

qn_status qn_writer_key_scalar(qn_writer *w, const char *key, qn_vtype type, const void *value)
{
    size_t n = 0;
    QN_TRY(fixed_bytes(w, key, type, &n));
    QN_TRY(add_key(w, str_of(key), type));
    qn_buf_add(&w->keys, value, n);
    return end_key(w, str_of(key));
}

qn_status qn_writer_key_u32(qn_writer *w, const char *key, uint32_t value)
{
    return qn_writer_key_scalar(w, key, QN_V_U32, &value);
}

qn_status qn_writer_key_f32(qn_writer *w, const char *key, float value)
{
    return qn_writer_key_scalar(w, key, QN_V_F32, &value);
}

qn_status qn_writer_key_bool(qn_writer *w, const char *key, bool value)
{
    const uint8_t byte = value;
    return qn_writer_key_scalar(w, key, QN_V_BOOL, &byte);
}

qn_status qn_writer_key_str(qn_writer *w, const char *key, qn_str value)
{
    QN_TRY(add_key(w, str_of(key), QN_V_STRING));
    add_str(&w->keys, value);
    return end_key(w, str_of(key));
}

qn_status qn_writer_key_array(qn_writer *w, const char *key, qn_vtype elem, const void *items, uint64_t n)
{
    size_t size = 0;
    QN_TRY(fixed_bytes(w, key, elem, &size));
    QN_TRY(add_key(w, str_of(key), QN_V_ARRAY));
    add_le(&w->keys, (uint64_t)elem, 4);
    add_le(&w->keys, n, 8);
    qn_buf_add(&w->keys, items, (size_t)n * size); /* the items lie in memory: no overflow */
    return end_key(w, str_of(key));
}

qn_status qn_writer_key_strings(qn_writer *w, const char *key, const qn_str *items, uint64_t n)
{
    QN_TRY(add_key(w, str_of(key), QN_V_ARRAY));
    add_le(&w->keys, QN_V_STRING, 4);
    add_le(&w->keys, n, 8);
    for (uint64_t i = 0; i < n; i++) add_str(&w->keys, items[i]);
    return end_key(w, str_of(key));
}

qn_status qn_writer_key_value(qn_writer *w, qn_str key, const qn_value *value)
{
    const qn_str own = QN_LIT("general.alignment");
    if (w->err.status || (key.len == own.len && !memcmp(key.ptr, own.ptr, own.len))) return w->err.status;
    QN_TRY(add_key(w, key, value->type));
    if (value->type == QN_V_STRING) add_le(&w->keys, value->n_bytes, 8);
    if (value->type == QN_V_ARRAY) {
        add_le(&w->keys, (uint64_t)value->elem, 4);
        add_le(&w->keys, value->count, 8);
    }
    qn_buf_add(&w->keys, value->data, value->n_bytes);
    return end_key(w, key);
}

/* ---- tensors ---- */

static qn_status tensor_bytes(qn_writer *w, const char *name, int32_t type, int32_t n_dims, const int64_t *dims, size_t *out)
{
    const qn_fmt *fmt = qn_fmt_by_id(type);
    if (!fmt) return qn_fail(&w->err, QN_ERR_ARG, "tensor '%.100s': no format has number %d", name, type);
    if (n_dims < 1 || n_dims > MAX_DIMS) return qn_fail(&w->err, QN_ERR_ARG, "tensor '%.100s' has %d dimensions", name, n_dims);
    bool fits = qn_fmt_row_bytes(fmt, dims[0], out);
    for (int32_t i = 1; i < n_dims; i++) fits = fits && dims[i] > 0 && qn_size_mul(*out, (size_t)dims[i], out);
    if (!fits || w->data_bytes + *out < *out || *out > (size_t)INT64_MAX - w->alignment)
        return qn_fail(&w->err, QN_ERR_ARG, "tensor '%.100s' has dimensions that %s does not allow", name, fmt->name);
    return QN_OK;
}

qn_status qn_writer_tensor(qn_writer *w, const char *name, int32_t type, int32_t n_dims, const int64_t *dims, const void *bytes)
{
    size_t n;
    if (w->err.status) return w->err.status;
    QN_TRY(tensor_bytes(w, name, type, n_dims, dims, &n));
    QN_TRY(add_name(w, &w->tensors, &w->tensor_names, &w->n_names, &w->cap_names, str_of(name)));
    add_le(&w->tensors, (uint64_t)n_dims, 4);
    for (int32_t i = 0; i < n_dims; i++) add_le(&w->tensors, (uint64_t)dims[i], 8);
    add_le(&w->tensors, (uint64_t)type, 4);
    add_le(&w->tensors, w->data_bytes, 8);
    if (w->tensors.failed || !qn_grow((void **)&w->list, &w->cap_tensors, w->n_tensors + 1, sizeof *w->list))
        return qn_fail(&w->err, QN_ERR_NOMEM, "no memory for tensor '%.100s'", name);
    w->list[w->n_tensors++] = (out_tensor){ bytes, n, w->data_bytes };
    w->data_bytes += n + padding_of(w, n);
    return QN_OK;
}

/* ---- data ---- */

static qn_status check_names(qn_writer *w, const qn_buf *b, const name_at *at, size_t n, const char *what)
{
    qn_names index;
    int64_t twin;
    qn_str *names = qn_new(n, sizeof *names);
    if (!names) return qn_fail(&w->err, QN_ERR_NOMEM, "no memory for %zu names", n);
    for (size_t i = 0; i < n; i++) names[i] = (qn_str){ b->ptr + at[i].offset, at[i].len };
    qn_status s = qn_names_open(&index, names, sizeof *names, (int64_t)n, &twin);
    if (s == QN_ERR_FORMAT) s = qn_fail(&w->err, QN_ERR_ARG, "%s '%.*s' is given twice", what, QN_STR_ARG(names[twin]));
    else if (s != QN_OK) s = qn_fail(&w->err, s, "no memory for %zu names", n);
    qn_names_close(&index);
    free(names);
    return s;
}

static uint64_t head_bytes(const qn_writer *w)
{
    const uint64_t n = 4 + 4 + 8 + 8 + w->keys.len + w->tensors.len; /* magic, version, two counts */
    return w->n_tensors ? n + padding_of(w, n) : n;
}

uint64_t qn_writer_file_bytes(const qn_writer *w)
{
    return head_bytes(w) + w->data_bytes;
}

static qn_status begin_data(qn_writer *w)
{
    if (w->err.status || w->has_begun) return w->err.status;
    w->has_begun = true;
    QN_TRY(check_names(w, &w->keys, w->key_names, w->n_keys, "key"));
    QN_TRY(check_names(w, &w->tensors, w->tensor_names, w->n_names, "tensor"));
    qn_buf head = { 0 };
    qn_buf_add(&head, "GGUF", 4);
    add_le(&head, 3, 4);
    add_le(&head, w->n_tensors, 8);
    add_le(&head, w->n_keys, 8);
    qn_status s = head.failed ? qn_fail(&w->err, QN_ERR_NOMEM, "no memory for a header") : put(w, head.ptr, head.len);
    if (s == QN_OK) s = put(w, w->keys.ptr, w->keys.len);
    if (s == QN_OK) s = put(w, w->tensors.ptr, w->tensors.len);
    if (s == QN_OK) s = put_padding(w, head_bytes(w) - (head.len + w->keys.len + w->tensors.len));
    qn_buf_free(&head);
    return s;
}

static qn_status end_tensor(qn_writer *w)
{
    const uint64_t n = padding_of(w, w->list[w->i_tensor].n_bytes);
    w->i_tensor++;
    w->done = 0;
    return put_padding(w, n);
}

/* Write tensors whose bytes are lent, up to the next that is streamed. */
static qn_status put_lent(qn_writer *w)
{
    while (w->i_tensor < w->n_tensors && w->list[w->i_tensor].bytes) {
        QN_TRY(put(w, w->list[w->i_tensor].bytes, w->list[w->i_tensor].n_bytes));
        QN_TRY(end_tensor(w));
    }
    return QN_OK;
}

qn_status qn_writer_data(qn_writer *w, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    QN_TRY(begin_data(w));
    while (n) {
        QN_TRY(put_lent(w));
        if (w->i_tensor == w->n_tensors) return qn_fail(&w->err, QN_ERR_ARG, "%zu bytes of data are left over after the last tensor", n);
        const size_t want = w->list[w->i_tensor].n_bytes - w->done, k = n < want ? n : want;
        QN_TRY(put(w, p, k));
        w->done += k;
        p += k;
        n -= k;
        if (k == want) QN_TRY(end_tensor(w));
    }
    return QN_OK;
}

/* ---- data in any order ---- */

/* Take the room of the whole file, where the file system can. */
static int take_room(int fd, uint64_t n)
{
#if defined(__linux__)
    if (fallocate(fd, 0, 0, (off_t)n) == 0) return 0;
    if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) return errno;
#endif
    return ftruncate(fd, (off_t)n) ? errno : 0;
}

static qn_status reserve(qn_writer *w)
{
    struct statvfs st;
    QN_TRY(begin_data(w));
    if (w->is_placed) return QN_OK;
    const uint64_t n = qn_writer_file_bytes(w);
    const bool is_short = fstatvfs(w->fd, &st) == 0 && n > (uint64_t)st.f_bavail * st.f_frsize;
    const int why = is_short ? ENOSPC : take_room(w->fd, n);
    if (why) return write_failed(w, why, &w->err);
    w->is_placed = true;
    w->head_bytes = n - w->data_bytes;
    return QN_OK;
}

/* Pass the failure on, if there is one. */
static qn_status tell(const qn_writer *w, qn_status s, qn_err *err)
{
    if (s != QN_OK && err) *err = w->err;
    return s;
}

qn_status qn_writer_reserve(qn_writer *w, qn_err *err)
{
    return tell(w, reserve(w), err);
}

qn_status qn_writer_check(const qn_writer *w, qn_err *err)
{
    return tell(w, w->err.status, err);
}

/* Let the disk begin with bytes that are complete, while the next ones are computed: the flush at the end has little left to wait for. What lies
 * within EDGE of a neighbour's bytes is left out: a page on its way to the disk cannot be written to, and the neighbour would wait for it. */
static void begin_flush(int fd, uint64_t at, size_t n)
{
#if defined(__linux__)
    enum { EDGE = 64 * 1024 };
    const uint64_t from = (at + EDGE - 1) / EDGE * EDGE, to = (at + n) / EDGE * EDGE;
    if (from < to) (void)sync_file_range(fd, (off_t)from, (off_t)(to - from), SYNC_FILE_RANGE_WRITE);
#else
    (void)fd;
    (void)at;
    (void)n;
#endif
}

qn_status qn_writer_place(const qn_writer *w, size_t i, uint64_t offset, const void *bytes, size_t n, qn_err *err)
{
    const uint8_t *p = bytes;
    if (!w->is_placed || i >= w->n_tensors || offset > w->list[i].n_bytes || n > w->list[i].n_bytes - offset)
        return qn_fail(err, QN_ERR_ARG, "%zu bytes at %llu are no part of tensor %zu", n, (unsigned long long)offset, i);
    uint64_t at = w->head_bytes + w->list[i].offset + offset;
    while (n) {
        const size_t most = (size_t)1 << 30;
        const ssize_t k = pwrite(w->fd, p, n < most ? n : most, (off_t)at);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return write_failed(w, k < 0 ? errno : ENOSPC, err);
        p += k;
        at += (uint64_t)k;
        n -= (size_t)k;
    }
    begin_flush(w->fd, at - (uint64_t)(p - (const uint8_t *)bytes), (size_t)(p - (const uint8_t *)bytes));
    return QN_OK;
}

/* ---- close ---- */

/* The new name is on the disk only when its folder is. Systems that cannot flush a folder keep it well enough. */
static void flush_folder(qn_writer *w)
{
    char *slash = strrchr(w->path, '/');
    if (slash) slash[slash == w->path ? 1 : 0] = 0;
    const int fd = open(slash ? w->path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

static qn_status check_complete(qn_writer *w)
{
    if (w->i_tensor == w->n_tensors || w->is_placed) return QN_OK;
    const qn_str name = { w->tensors.ptr + w->tensor_names[w->i_tensor].offset, w->tensor_names[w->i_tensor].len };
    return qn_fail(&w->err, QN_ERR_ARG, "tensor '%.*s' got %zu of its %zu bytes", QN_STR_ARG(name), w->done, w->list[w->i_tensor].n_bytes);
}

static qn_status flush(qn_writer *w)
{
    QN_TRY(begin_data(w));
    if (w->is_flushed) return QN_OK;
    if (!w->is_placed) QN_TRY(put_lent(w));
    QN_TRY(check_complete(w));
    if (fsync(w->fd) && errno != EINVAL && errno != EROFS)
        return qn_fail(&w->err, QN_ERR_IO, "cannot flush %.300s: %s", w->part, strerror(errno));
    w->is_flushed = true;
    return QN_OK;
}

qn_status qn_writer_flush(qn_writer *w, qn_err *err)
{
    return tell(w, flush(w), err);
}

static qn_status commit(qn_writer *w)
{
    QN_TRY(flush(w));
    const int fd = w->fd;
    w->fd = -1;
    if (close(fd)) return qn_fail(&w->err, QN_ERR_IO, "cannot close %.300s: %s", w->part, strerror(errno));
    if (rename(w->part, w->path)) return qn_fail(&w->err, QN_ERR_IO, "cannot rename to %.300s: %s", w->path, strerror(errno));
    free(w->part);
    w->part = NULL;
    flush_folder(w);
    return QN_OK;
}

qn_status qn_writer_close(qn_writer **w, qn_err *err)
{
    if (!*w) return QN_OK;
    const qn_status s = tell(*w, commit(*w), err);
    qn_writer_abandon(w);
    return s;
}

void qn_writer_abandon(qn_writer **writer)
{
    qn_writer *w = *writer;
    *writer = NULL;
    if (!w) return;
    if (w->fd >= 0) close(w->fd);
    if (w->part) unlink(w->part);
    qn_buf_free(&w->keys);
    qn_buf_free(&w->tensors);
    free(w->key_names);
    free(w->tensor_names);
    free(w->list);
    free(w->path);
    free(w->part);
    free(w);
}

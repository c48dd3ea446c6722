/* The new files: their names, their keys, and that they appear together or not at all. */
#include "src/base/mem.h"
#include "src/convert/imatrix.h"
#include "src/convert/quantize_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { QUANTIZATION_VERSION = 2 }; /* of the block layouts that GGUF numbers stand for */

/* The path of new file i, for free(); NULL: no memory. */
static char *path_of(const qn_quantize *q, const char *path, int32_t i)
{
    static const char ext[] = ".gguf";
    const size_t n = strlen(path), cap = n + 32;
    char *out = qn_new(cap, 1);
    if (!out) return NULL;
    const bool has_ext = n >= sizeof ext - 1 && !strcmp(path + n - (sizeof ext - 1), ext);
    if (q->n_files == 1) memcpy(out, path, n);
    else snprintf(out, cap, "%.*s-%05d-of-%05d.gguf", (int)(has_ext ? n - (sizeof ext - 1) : n), path, i + 1, q->n_files);
    return out;
}

/* ---- keys ---- */

static bool starts_with(qn_str s, const char *head)
{
    const size_t n = strlen(head);
    return s.len >= n && !memcmp(s.ptr, head, n);
}

/* Keys that the new file has of its own. */
static bool is_replaced(const qn_quantize *q, qn_str key)
{
    static const char *const own[] = { "general.quantization_version", "general.file_type" };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (key.len == strlen(own[i]) && starts_with(key, own[i])) return true;
    return starts_with(key, "split.") || (q->imatrix && starts_with(key, "quantize.imatrix."));
}

static void add_imatrix_keys(const qn_quantize *q, qn_writer *w)
{
    const qn_imatrix *m = q->imatrix;
    if (!m) return;
    if (q->imatrix_name) qn_writer_key_str(w, "quantize.imatrix.file", (qn_str){ q->imatrix_name, strlen(q->imatrix_name) });
    if (m->n_datasets) qn_writer_key_str(w, "quantize.imatrix.dataset", m->dataset[0]);
    qn_writer_key_u32(w, "quantize.imatrix.entries_count", (uint32_t)m->n);
    if (m->n_chunks) qn_writer_key_u32(w, "quantize.imatrix.chunks_count", m->n_chunks);
}

static void add_keys(const qn_quantize *q, int32_t i, qn_writer *w)
{
    qn_str key;
    qn_value v;
    for (int64_t k = 0; i == 0 && qn_file_key_at(q->file, k, &key, &v); k++)
        if (!is_replaced(q, key)) qn_writer_key_value(w, key, &v);
    if (i == 0) {
        qn_writer_key_u32(w, "general.quantization_version", QUANTIZATION_VERSION);
        qn_writer_key_u32(w, "general.file_type", (uint32_t)q->recipe->file_type);
        add_imatrix_keys(q, w);
    }
    if (q->n_files == 1) return;
    const uint16_t no = (uint16_t)i, count = (uint16_t)q->n_files; /* a split set has at most 65535 files */
    const int32_t n_tensors = (int32_t)q->n_jobs;
    qn_writer_key_scalar(w, "split.no", QN_V_U16, &no);
    qn_writer_key_scalar(w, "split.count", QN_V_U16, &count);
    qn_writer_key_scalar(w, "split.tensors.count", QN_V_I32, &n_tensors);
}

/* ---- tensors ---- */

static qn_status add_tensor(const qn_quantize *q, int64_t i, qn_writer *w, qn_err *err)
{
    const qn_tensor_info *t = &qn_quantize_source(q, i)->info;
    char *name = qn_new(t->name.len + 1, 1);
    if (!name) return qn_fail(err, QN_ERR_NOMEM, "no memory for a name");
    memcpy(name, t->name.ptr, t->name.len);
    const bool whole = strlen(name) == t->name.len;
    if (whole) qn_writer_tensor(w, name, q->job[i].to->id, t->n_dims, t->dims, NULL);
    free(name);
    return whole ? QN_OK : qn_fail(err, QN_ERR_UNSUPPORTED, "tensor %lld has a NUL in its name", (long long)i);
}

qn_status qn_quantize_announce(const qn_quantize *q, int32_t i, const char *path, qn_writer **out, qn_err *err)
{
    const uint64_t alignment = q->file->shards[0].alignment;
    QN_TRY(qn_writer_open(out, path, alignment > UINT32_MAX ? 0 : (uint32_t)alignment, err));
    add_keys(q, i, *out);
    qn_status s = QN_OK;
    for (int64_t k = 0; k < q->n_jobs && s == QN_OK; k++)
        if (q->job[k].i_file == i) s = add_tensor(q, k, *out, err);
    return s;
}

/* ---- all of them ---- */

static qn_status check_path(const qn_quantize *q, const char *path, qn_err *err)
{
    for (size_t i = 0; i < q->file->n_shards; i++)
        if (qn_map_is_file(&q->file->shards[i].map, path)) return qn_fail(err, QN_ERR_ARG, "%.300s is the file that is read; write to another name", path);
    return QN_OK;
}

static qn_status open_all(const qn_quantize *q, char *const *paths, qn_writer **writers, qn_err *err)
{
    for (int32_t i = 0; i < q->n_files; i++) {
        QN_TRY(check_path(q, paths[i], err));
        QN_TRY(qn_quantize_announce(q, i, paths[i], &writers[i], err));
        QN_TRY(qn_writer_reserve(writers[i], err));
    }
    return QN_OK;
}

/* All reach the disk before the first gets its name. */
static qn_status close_all(const qn_quantize *q, char *const *paths, qn_writer **writers, qn_err *err)
{
    qn_status s = QN_OK;
    for (int32_t i = 0; i < q->n_files && s == QN_OK; i++) s = qn_writer_flush(writers[i], err);
    int32_t n_named = 0;
    for (; n_named < q->n_files && s == QN_OK; n_named += s == QN_OK) s = qn_writer_close(&writers[n_named], err);
    if (s != QN_OK)
        while (n_named > 0) unlink(paths[--n_named]); /* part of a set is no set */
    return s;
}

static qn_status run(qn_quantize *q, char **paths, qn_writer **writers, const char *path, qn_err *err)
{
    for (int32_t i = 0; i < q->n_files; i++) {
        paths[i] = path_of(q, path, i);
        if (!paths[i]) return qn_fail(err, QN_ERR_NOMEM, "no memory for a path");
    }
    QN_TRY(open_all(q, paths, writers, err));
    QN_TRY(qn_quantize_tensors(q, writers, err));
    return close_all(q, paths, writers, err);
}

qn_status qn_quantize_run(qn_quantize *q, const char *path, qn_err *err)
{
    char **paths = qn_new((size_t)q->n_files, sizeof *paths);
    qn_writer **writers = qn_new((size_t)q->n_files, sizeof *writers);
    const qn_status s = paths && writers ? run(q, paths, writers, path, err) : qn_fail(err, QN_ERR_NOMEM, "no memory for %d files", q->n_files);
    for (int32_t i = 0; paths && writers && i < q->n_files; i++) {
        qn_writer_abandon(&writers[i]);
        free(paths[i]);
    }
    free(paths);
    free(writers);
    return s;
}

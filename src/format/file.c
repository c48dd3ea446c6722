/* The public face of the GGUF reader: one or more parsed files as one. */
#include "src/base/mem.h"
#include "src/format/gguf.h"
#include "src/format/keys.h"

#include <stdlib.h>
#include <string.h>

/* Shard i's tensors move to the end of the file's list. */
static qn_status take_tensors(qn_file *f, size_t i_shard, qn_err *err)
{
    qn_gguf *g = &f->shards[i_shard];
    const size_t n = f->n_tensors + g->n_tensors; /* each entry lies in memory: no overflow */
    if (!qn_grow((void **)&f->tensors, &f->cap_tensors, n, sizeof *f->tensors))
        return qn_fail(err, QN_ERR_NOMEM, "no memory for %zu tensors", n);
    for (size_t k = 0; k < g->n_tensors; k++) {
        f->tensors[f->n_tensors] = g->tensors[k];
        f->tensors[f->n_tensors++].info.i_shard = (int32_t)i_shard;
    }
    free(g->tensors);
    g->tensors = NULL;
    g->n_tensors = g->cap_tensors = 0;
    f->n_bytes += g->n_bytes;
    return QN_OK;
}

static qn_status index_tensors(qn_file *f, const qn_split_info *split, qn_err *err)
{
    int64_t twin;
    for (size_t i = 0; i < f->n_shards; i++) QN_TRY(take_tensors(f, i, err));
    if (split->n_tensors >= 0 && (uint64_t)split->n_tensors != f->n_tensors)
        return qn_fail(err, QN_ERR_FORMAT, "the %zu shards hold %zu tensors; key 'split.tensors.count' promises %lld", f->n_shards,
                       f->n_tensors, (long long)split->n_tensors);
    const qn_status s = qn_names_open(&f->tensor_names, f->tensors, sizeof *f->tensors, (int64_t)f->n_tensors, &twin);
    if (s == QN_ERR_FORMAT) return qn_fail(err, s, "tensor '%.*s' is there twice", QN_STR_ARG(f->tensors[twin].info.name));
    if (s != QN_OK) return qn_fail(err, s, "no memory for the index of %zu tensors", f->n_tensors);
    return QN_OK;
}

/* Fill f from `first`, which is moved from. path NULL: bytes in memory. */
static qn_status assemble(qn_file *f, qn_gguf *first, const char *path, qn_err *err)
{
    qn_split_info split;
    QN_TRY(qn_split_read(first, &split, err));
    if (split.count > 1 && !path) return qn_fail(err, QN_ERR_ARG, "a shard of a split set is opened by its path");
    if (split.count > 1) {
        QN_TRY(qn_split_open(f, first, path, &split, err));
    } else {
        if (!qn_grow((void **)&f->shards, &f->cap_shards, 1, sizeof *f->shards))
            return qn_fail(err, QN_ERR_NOMEM, "no memory for the file");
        f->shards[f->n_shards++] = *first;
        *first = (qn_gguf){ 0 };
    }
    return index_tensors(f, &split, err);
}

static qn_status finish_open(qn_file **out, qn_gguf *first, const char *path, qn_err *err)
{
    qn_file *f = qn_new(1, sizeof *f);
    qn_status s = f ? assemble(f, first, path, err) : qn_fail(err, QN_ERR_NOMEM, "no memory for the file");
    if (s != QN_OK) {
        if (path) s = qn_fail_in(err, s, "%.200s", path);
        qn_gguf_close(first);
        qn_file_close(&f);
    }
    *out = f;
    return s;
}

qn_status qn_file_open(qn_file **out, const char *path, qn_err *err)
{
    qn_gguf g;
    *out = NULL;
    QN_TRY(qn_gguf_open(&g, path, err));
    return finish_open(out, &g, path, err);
}

qn_status qn_file_open_memory(qn_file **out, const void *bytes, size_t n, qn_err *err)
{
    qn_gguf g = { .bytes = bytes, .n_bytes = n };
    *out = NULL;
    const qn_status s = qn_gguf_parse(&g, err);
    if (s == QN_OK) return finish_open(out, &g, NULL, err);
    qn_gguf_close(&g);
    return s;
}

void qn_file_close(qn_file **file)
{
    qn_file *f = *file;
    *file = NULL;
    if (!f) return;
    for (size_t i = 0; i < f->n_shards; i++) qn_gguf_close(&f->shards[i]);
    qn_names_close(&f->tensor_names);
    free(f->shards);
    free(f->tensors);
    free(f);
}

int32_t qn_file_version(const qn_file *file)
{
    return file->shards[0].version;
}

int32_t qn_file_n_shards(const qn_file *file)
{
    return (int32_t)file->n_shards;
}

uint64_t qn_file_bytes(const qn_file *file)
{
    return file->n_bytes;
}

int64_t qn_file_n_keys(const qn_file *file)
{
    return (int64_t)file->shards[0].n_keys;
}

int64_t qn_file_n_tensors(const qn_file *file)
{
    return (int64_t)file->n_tensors;
}

bool qn_file_key_at(const qn_file *file, int64_t i, qn_str *key, qn_value *value)
{
    if (i < 0 || i >= qn_file_n_keys(file)) return false;
    *key = file->shards[0].keys[i].name;
    *value = file->shards[0].keys[i].value;
    return true;
}

bool qn_file_key(const qn_file *file, const char *key, qn_value *value)
{
    return qn_gguf_find(&file->shards[0], (qn_str){ key, strlen(key) }, value);
}

bool qn_file_tensor_at(const qn_file *file, int64_t i, qn_tensor_info *info)
{
    if (i < 0 || i >= qn_file_n_tensors(file)) return false;
    *info = file->tensors[i].info;
    return true;
}

int64_t qn_file_tensor_find(const qn_file *file, const char *name)
{
    return qn_names_find(&file->tensor_names, (qn_str){ name, strlen(name) });
}

qn_status qn_file_rows_f32(const qn_file *file, int64_t i, int64_t row, int64_t n_rows, float *out, qn_err *err)
{
    if (i < 0 || i >= qn_file_n_tensors(file))
        return qn_fail(err, QN_ERR_ARG, "there is no tensor %lld; the file has %lld", (long long)i, (long long)qn_file_n_tensors(file));
    const qn_gguf_tensor *t = &file->tensors[i];
    if (row < 0 || n_rows < 0 || row > t->n_rows || n_rows > t->n_rows - row)
        return qn_fail(err, QN_ERR_ARG, "tensor '%.*s' has %lld rows; [%lld, %lld + %lld) is outside", QN_STR_ARG(t->info.name),
                       (long long)t->n_rows, (long long)row, (long long)row, (long long)n_rows);
    if (n_rows) t->fmt->decode(t->bytes + (size_t)row * t->row_bytes, t->info.dims[0] / t->fmt->block * n_rows, out);
    return QN_OK;
}

/* ---- for those who load weights ---- */

const uint8_t *qn_file_tensor_bytes(const qn_file *f, int64_t i)
{
    return f->tensors[i].bytes;
}

const qn_map *qn_file_tensor_map(const qn_file *f, int64_t i, size_t *at)
{
    const qn_tensor_info *t = &f->tensors[i].info;
    *at = (size_t)t->offset;
    return &f->shards[t->i_shard].map;
}

void qn_file_tensor_drop(const qn_file *f, int64_t i, size_t begin, size_t n)
{
    const qn_tensor_info *t = &f->tensors[i].info;
    qn_map_advise(&f->shards[t->i_shard].map, (size_t)t->offset + begin, n, QN_MAP_DROP);
}

void qn_file_tensor_expect(const qn_file *f, int64_t i)
{
    const qn_tensor_info *t = &f->tensors[i].info;
    qn_map_advise(&f->shards[t->i_shard].map, (size_t)t->offset, (size_t)t->n_bytes, QN_MAP_EXPECT);
}

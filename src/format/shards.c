/*
 * Split files. The keys split.no, split.count and split.tensors.count say what a file is; its name only says where the others are:
 * "<prefix>-00001-of-00003.gguf", numbered from 1.
 */
#include "src/base/mem.h"
#include "src/format/gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SHARDS = 65535, SUFFIX_LEN = sizeof("-00001-of-00003.gguf") - 1 };

static qn_status split_key(const qn_gguf *g, const char *key, int64_t lo, int64_t hi, int64_t *out, qn_err *err)
{
    qn_value v;
    if (!qn_gguf_find(g, (qn_str){ key, strlen(key) }, &v))
        return qn_fail(err, QN_ERR_FORMAT, "this is a shard, but key '%s' is missing", key);
    if (qn_value_as_i64(&v, out) != QN_OK)
        return qn_fail(err, QN_ERR_FORMAT, "key '%s' has type %s; it has to be a whole number", key, qn_vtype_name(v.type));
    if (*out < lo || *out > hi) return qn_fail(err, QN_ERR_FORMAT, "key '%s' is %lld", key, (long long)*out);
    return QN_OK;
}

qn_status qn_split_read(const qn_gguf *g, qn_split_info *out, qn_err *err)
{
    qn_value ignored;
    *out = (qn_split_info){ 0, 1, -1 };
    if (!qn_gguf_find(g, QN_LIT("split.count"), &ignored)) return QN_OK;
    QN_TRY(split_key(g, "split.count", 0, MAX_SHARDS, &out->count, err));
    if (out->count <= 1) return QN_OK;
    QN_TRY(split_key(g, "split.no", 0, out->count - 1, &out->no, err));
    return split_key(g, "split.tensors.count", 0, INT64_MAX, &out->n_tensors, err);
}

/* "-NNNNN-of-NNNNN.gguf" at the end of the path? */
static bool has_suffix(const char *path)
{
    const size_t n = strlen(path);
    if (n < SUFFIX_LEN) return false;
    const char *pattern = "-#####-of-#####.gguf", *s = path + n - SUFFIX_LEN;
    for (; *pattern; pattern++, s++)
        if (*pattern == '#' ? *s < '0' || *s > '9' : *s != *pattern) return false;
    return true;
}

static qn_status open_one(qn_gguf *g, const char *path, int64_t i, const qn_split_info *want, qn_err *err)
{
    qn_split_info have;
    QN_TRY(qn_gguf_open(g, path, err));
    qn_status s = qn_split_read(g, &have, err);
    if (s == QN_OK && have.count != want->count)
        s = qn_fail(err, QN_ERR_FORMAT, "this shard is one of %lld, the one that was opened is one of %lld", (long long)have.count,
                    (long long)want->count);
    if (s == QN_OK && have.no != i)
        s = qn_fail(err, QN_ERR_FORMAT, "this is shard %lld of its set by key 'split.no', where shard %lld was expected",
                    (long long)have.no + 1, (long long)i + 1);
    if (s == QN_OK && have.n_tensors != want->n_tensors)
        s = qn_fail(err, QN_ERR_FORMAT, "key 'split.tensors.count' is %lld, in the shard that was opened %lld", (long long)have.n_tensors,
                    (long long)want->n_tensors);
    if (s == QN_OK) return QN_OK;
    qn_gguf_close(g);
    return qn_fail_in(err, s, "shard %lld of %lld, %.200s", (long long)i + 1, (long long)want->count, path);
}

/* path_buf: the opened path, whose suffix is rewritten for each shard. */
static qn_status open_all(qn_file *file, qn_gguf *first, char *path_buf, const qn_split_info *info, qn_err *err)
{
    char *suffix = path_buf + strlen(path_buf) - SUFFIX_LEN;
    for (int64_t i = 0; i < info->count; i++) {
        qn_gguf g;
        const uint16_t no = (uint16_t)(i + 1), count = (uint16_t)info->count; /* both at most MAX_SHARDS: five digits */
        snprintf(suffix, SUFFIX_LEN + 1, "-%05u-of-%05u.gguf", no, count);
        if (!qn_grow((void **)&file->shards, &file->cap_shards, file->n_shards + 1, sizeof *file->shards))
            return qn_fail(err, QN_ERR_NOMEM, "no memory for %lld shards", (long long)info->count);
        if (i != info->no) {
            QN_TRY(open_one(&g, path_buf, i, info, err));
        } else {
            g = *first;
            *first = (qn_gguf){ 0 };
        }
        file->shards[file->n_shards++] = g;
    }
    return QN_OK;
}

qn_status qn_split_open(qn_file *file, qn_gguf *first, const char *path, const qn_split_info *info, qn_err *err)
{
    if (!has_suffix(path))
        return qn_fail(err, QN_ERR_FORMAT,
                       "this is shard %lld of %lld, but its name does not end in '-%05d-of-%05d.gguf', so the others cannot be found",
                       (long long)info->no + 1, (long long)info->count, (int)info->no + 1, (int)info->count);
    const size_t n = strlen(path) + 1;
    char *buf = qn_new(n, 1);
    if (!buf) return qn_fail(err, QN_ERR_NOMEM, "no memory for a path");
    memcpy(buf, path, n);
    const qn_status s = open_all(file, first, buf, info, err);
    free(buf);
    return s;
}

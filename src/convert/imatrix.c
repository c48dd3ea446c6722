#include "src/convert/imatrix.h"

#include "src/base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

qn_status qn_imatrix_new(qn_imatrix **out, qn_err *err)
{
    *out = qn_new(1, sizeof **out);
    return *out ? QN_OK : qn_fail(err, QN_ERR_NOMEM, "no memory for importance data");
}

static bool copy_str(qn_str *out, qn_str s)
{
    char *p = qn_new(s.len + 1, 1);
    if (p && s.len) memcpy(p, s.ptr, s.len);
    *out = (qn_str){ p, p ? s.len : 0 };
    return p != NULL;
}

static void free_str(qn_str *s)
{
    free((void *)(uintptr_t)s->ptr);
    *s = (qn_str){ 0 };
}

static void entry_free(qn_imatrix_entry *e)
{
    free_str(&e->name);
    free(e->sum);
    free(e->mean);
    free(e->count);
}

qn_imatrix_entry *qn_imatrix_add(qn_imatrix *m, qn_str name, int64_t n_cols, int64_t n_mats)
{
    size_t n;
    if (!qn_size_mul((size_t)n_cols, (size_t)n_mats, &n)) return NULL;
    if (!qn_grow((void **)&m->entry, &m->cap, m->n + 1, sizeof *m->entry)) return NULL;
    qn_imatrix_entry e = {
        .n_cols = n_cols, .n_mats = n_mats, .sum = qn_new(n, sizeof(float)), .mean = qn_new(n, sizeof(float)),
        .count = qn_new((size_t)n_mats, sizeof(float)),
    };
    if (!copy_str(&e.name, name) || !e.sum || !e.mean || !e.count) {
        entry_free(&e);
        return NULL;
    }
    m->entry[m->n] = e;
    return &m->entry[m->n++];
}

qn_status qn_imatrix_add_dataset(qn_imatrix *m, qn_str name, qn_err *err)
{
    if (!qn_grow((void **)&m->dataset, &m->cap_datasets, m->n_datasets + 1, sizeof *m->dataset) || !copy_str(&m->dataset[m->n_datasets], name))
        return qn_fail(err, QN_ERR_NOMEM, "no memory for the name of a text");
    m->n_datasets++;
    return QN_OK;
}

/* Also false for NaN. */
static bool is_sum(float x)
{
    return x >= 0 && x < INFINITY;
}

static qn_status entry_finish(qn_imatrix_entry *e, qn_err *err)
{
    for (int64_t k = 0; k < e->n_mats; k++) {
        if (!is_sum(e->count[k]))
            return qn_fail(err, QN_ERR_FORMAT, "importance data of tensor %.*s: a count of %g", QN_STR_ARG(e->name), (double)e->count[k]);
        const float *sum = e->sum + k * e->n_cols;
        float *mean = e->mean + k * e->n_cols;
        for (int64_t i = 0; i < e->n_cols; i++) {
            if (!is_sum(sum[i]))
                return qn_fail(err, QN_ERR_FORMAT, "importance data of tensor %.*s: %g as a sum of squares, in column %lld", QN_STR_ARG(e->name),
                               (double)sum[i], (long long)i);
            mean[i] = e->count[k] > 0 ? sum[i] / e->count[k] : 1;
            if (!is_sum(mean[i])) mean[i] = 1; /* a count below 1 */
        }
    }
    return QN_OK;
}

qn_status qn_imatrix_finish(qn_imatrix *m, qn_err *err)
{
    int64_t twin;
    for (size_t i = 0; i < m->n; i++) QN_TRY(entry_finish(&m->entry[i], err));
    const qn_status s = qn_names_open(&m->names, m->entry, sizeof *m->entry, (int64_t)m->n, &twin);
    if (s == QN_ERR_FORMAT) return qn_fail(err, s, "importance data of tensor %.*s is there twice", QN_STR_ARG(m->entry[twin].name));
    return s == QN_OK ? s : qn_fail(err, s, "no memory for the index of importance data");
}

void qn_imatrix_close(qn_imatrix **imatrix)
{
    qn_imatrix *m = *imatrix;
    if (!m) return;
    for (size_t i = 0; i < m->n; i++) entry_free(&m->entry[i]);
    for (size_t i = 0; i < m->n_datasets; i++) free_str(&m->dataset[i]);
    qn_names_close(&m->names);
    free(m->entry);
    free(m->dataset);
    free(m);
    *imatrix = NULL;
}

qn_status qn_imatrix_find(const qn_imatrix *m, qn_str tensor, int64_t n, const float **values)
{
    const int64_t i = qn_names_find(&m->names, tensor);
    *values = NULL;
    if (i < 0) return QN_ERR_NOT_FOUND;
    const qn_imatrix_entry *e = &m->entry[i];
    if (n < 1 || (e->n_cols != n && !(e->n_mats == 1 && e->n_cols % n == 0))) return QN_ERR_FORMAT;
    *values = e->mean;
    return QN_OK;
}

void qn_imatrix_get_info(const qn_imatrix *m, qn_imatrix_info *out)
{
    *out = (qn_imatrix_info){ .n_tensors = (int64_t)m->n, .n_chunks = m->n_chunks, .chunk_tokens = m->chunk_tokens };
}

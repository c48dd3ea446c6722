#include "src/convert/imatrix.h"

#include "src/base/mem.h"
#include "src/format/writer.h"

#include <stdlib.h>
#include <string.h>

/* Entries in order of their names, so that the file does not depend on how they were found. */
static int by_name(const void *pa, const void *pb)
{
    const qn_imatrix_entry *a = *(qn_imatrix_entry *const *)pa, *b = *(qn_imatrix_entry *const *)pb;
    const size_t n = a->name.len < b->name.len ? a->name.len : b->name.len;
    const int d = memcmp(a->name.ptr, b->name.ptr, n);
    return d ? d : (a->name.len > b->name.len) - (a->name.len < b->name.len);
}

static qn_status announce(qn_writer *w, const qn_imatrix_entry *e, const char *tail, int64_t n_cols, const float *values, qn_err *err)
{
    qn_buf name = { 0 };
    qn_buf_add(&name, e->name.ptr, e->name.len);
    qn_buf_add(&name, tail, strlen(tail));
    const qn_status s = name.failed ? qn_fail(err, QN_ERR_NOMEM, "no memory for a tensor's name")
                                    : qn_writer_tensor(w, name.ptr, 0, e->n_mats > 1 ? 2 : 1, (int64_t[]){ n_cols, e->n_mats }, values);
    qn_buf_free(&name);
    return s;
}

static qn_status announce_all(qn_writer *w, const qn_imatrix *m, const qn_imatrix_entry **sorted, qn_err *err)
{
    for (size_t i = 0; i < m->n; i++) sorted[i] = &m->entry[i];
    qsort(sorted, m->n, sizeof *sorted, by_name);
    (void)qn_writer_key_str(w, "general.type", QN_LIT("imatrix"));
    (void)qn_writer_key_strings(w, "imatrix.datasets", m->dataset, m->n_datasets);
    (void)qn_writer_key_u32(w, "imatrix.chunk_count", m->n_chunks);
    (void)qn_writer_key_u32(w, "imatrix.chunk_size", m->chunk_tokens);
    for (size_t i = 0; i < m->n; i++) {
        QN_TRY(announce(w, sorted[i], ".in_sum2", sorted[i]->n_cols, sorted[i]->sum, err));
        QN_TRY(announce(w, sorted[i], ".counts", 1, sorted[i]->count, err));
    }
    return QN_OK;
}

qn_status qn_imatrix_save(const qn_imatrix *m, const char *path, qn_err *err)
{
    enum { ALIGNMENT = 32 };
    qn_writer *w = NULL;
    const qn_imatrix_entry **sorted = qn_new(m->n, sizeof *sorted);
    if (!sorted) return qn_fail(err, QN_ERR_NOMEM, "no memory for a list of %zu tensors", m->n);
    qn_status s = qn_writer_open(&w, path, ALIGNMENT, err);
    if (s == QN_OK) s = announce_all(w, m, sorted, err);
    if (s == QN_ERR_NOMEM) qn_writer_abandon(&w);
    else if (w) s = qn_writer_close(&w, err);
    free(sorted);
    return s;
}

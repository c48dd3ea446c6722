/* The public face of quantising. */
#include "src/convert/quantize_job.h"

#include "src/base/mem.h"
#include "src/base/opts.h"

#include <stdlib.h>
#include <string.h>

bool qn_quantize_type_at(int32_t i, qn_quantize_type *out)
{
    const qn_recipe *r = qn_recipe_at(i);
    if (r) *out = (qn_quantize_type){ r->name, r->format, r->about };
    return r != NULL;
}

/* The sizes of the new files, whose headers depend on every key and name. */
static qn_status size_files(qn_quantize *q, qn_err *err)
{
    qn_status s = QN_OK;
    for (int32_t i = 0; i < q->n_files && s == QN_OK; i++) {
        qn_writer *w = NULL;
        s = qn_quantize_announce(q, i, NULL, &w, err);
        if (s == QN_OK) s = qn_writer_check(w, err);
        if (s == QN_OK) q->file_bytes += qn_writer_file_bytes(w);
        qn_writer_abandon(&w);
    }
    return s;
}

static qn_status set_up(qn_quantize *q, const char *path, const qn_quantize_opts *opts, qn_err *err)
{
    q->n_threads = opts->n_threads;
    q->progress = opts->progress;
    q->progress_user = opts->progress_user;
    q->imatrix = opts->imatrix;
    if (opts->imatrix && opts->imatrix_name) {
        const size_t n = strlen(opts->imatrix_name);
        q->imatrix_name = qn_new(n + 1, 1);
        if (!q->imatrix_name) return qn_fail(err, QN_ERR_NOMEM, "no memory for a name");
        memcpy(q->imatrix_name, opts->imatrix_name, n);
    }
    QN_TRY(qn_kernels_init(&q->kernels, NULL, true, err));
    QN_TRY(qn_file_open(&q->file, path, err));
    QN_TRY(qn_quantize_plan(q, opts, err));
    return size_files(q, err);
}

qn_status qn_quantize_open(qn_quantize **out, const char *path, const qn_quantize_opts *opts, qn_err *err)
{
    qn_quantize_opts o;
    *out = NULL;
    QN_TRY(qn_opts_take(&o, sizeof o, opts, "quantising", err));
    qn_quantize *q = qn_new(1, sizeof *q);
    if (!q) return qn_fail(err, QN_ERR_NOMEM, "no memory for a plan");
    const qn_status s = set_up(q, path, &o, err);
    if (s == QN_OK) *out = q;
    else qn_quantize_close(&q);
    return s;
}

void qn_quantize_close(qn_quantize **quantize)
{
    qn_quantize *q = *quantize;
    *quantize = NULL;
    if (!q) return;
    qn_file_close(&q->file);
    free(q->imatrix_name);
    free(q->job);
    free(q->order);
    free(q);
}

const qn_file *qn_quantize_file(const qn_quantize *q)
{
    return q->file;
}

bool qn_quantize_tensor_at(const qn_quantize *q, int64_t i, qn_quantize_tensor *out)
{
    if (i < 0 || i >= q->n_jobs) return false;
    const qn_job *j = &q->job[i];
    *out = (qn_quantize_tensor){
        .source = qn_quantize_source(q, i)->info, .type_name = j->to->name, .wanted = j->wanted->name, .n_bytes = j->n_bytes,
        .has_importance = j->has_importance, .error = j->error,
    };
    return true;
}

void qn_quantize_get_totals(const qn_quantize *q, qn_quantize_totals *out)
{
    *out = (qn_quantize_totals){ .file_bytes = q->file_bytes, .n_files = q->n_files };
    for (int64_t i = 0; i < q->n_jobs; i++) {
        const qn_gguf_tensor *t = qn_quantize_source(q, i);
        const qn_job *j = &q->job[i];
        const bool changes = j->to != t->fmt;
        out->n_weights += (uint64_t)t->info.dims[0] * (uint64_t)t->n_rows;
        out->source_bytes += t->info.n_bytes;
        out->tensor_bytes += j->n_bytes;
        out->n_quantized += changes;
        out->n_substituted += j->to != j->wanted;
        out->n_without_importance += changes && j->to->block > 1 && q->imatrix && !j->has_importance;
    }
}

void qn_quantize_set_hook(qn_quantize *q, const qn_encode_hook *hook)
{
    q->hook = hook ? *hook : (qn_encode_hook){ 0 };
}

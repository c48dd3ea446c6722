#include "src/base/mem.h"
#include "src/base/opts.h"
#include "src/convert/calib.h"
#include "src/convert/imatrix.h"
#include "src/run/engine.h"

#include <stdlib.h>
#include <string.h>

/* Sums of one stage, whose matrices all read the same rows. Sums of doubles: 10^9 rows of one size lose nothing that a float would show. */
typedef struct stage_sums {
    double *sum;             /* [width], or NULL                                             */
    int64_t n_rows;
} stage_sums;

typedef struct collector {
    const qn_plan *plan;
    stage_sums *of;          /* [n_stages]                                                   */
    bool head;
} collector;

static bool is_wanted(const collector *c, const qn_stage *s)
{
    return s->run == qn_op_matmul && (c->head || !s->u.matmul.to_logits);
}

/* Each thread has its own columns, and rows come in order: the sums do not depend on the number of threads. */
static bool add_rows(void *user, const qn_stage *s, const float *x, int64_t x_stride, int32_t n_rows, int32_t i_thread, int32_t n_threads)
{
    const collector *c = user;
    stage_sums *to = &c->of[s - c->plan->stage];
    int64_t begin, end;
    if (to->sum) {
        qn_split(s->u.matmul.in.width, i_thread, n_threads, &begin, &end);
        for (int32_t r = 0; r < n_rows; r++)
            for (int64_t i = begin; i < end; i++) to->sum[i] += (double)x[r * x_stride + i] * (double)x[r * x_stride + i];
        if (i_thread == 0) to->n_rows += n_rows;
    }
    return !s->u.matmul.to_logits; /* nobody asks for logits */
}

static qn_status open_sums(collector *c, qn_err *err)
{
    c->of = qn_new(c->plan->n_stages, sizeof *c->of);
    bool good = c->of != NULL;
    for (size_t i = 0; good && i < c->plan->n_stages; i++) {
        const qn_stage *s = &c->plan->stage[i];
        if (!is_wanted(c, s)) continue;
        c->of[i].sum = qn_new((size_t)s->u.matmul.in.width, sizeof(double));
        good = c->of[i].sum != NULL;
    }
    return good ? QN_OK : qn_fail(err, QN_ERR_NOMEM, "no memory for the sums of importance data");
}

static void close_sums(collector *c)
{
    for (size_t i = 0; c->of && i < c->plan->n_stages; i++) free(c->of[i].sum);
    free(c->of);
}

/* One step of the engine at a time, so that a long window can be left in the middle. */
static qn_status evaluate(qn_session *session, const qn_engine *engine, const qn_calib *text, const qn_observer *o, const qn_imatrix_opts *opts, qn_err *err)
{
    const uint64_t total = (uint64_t)text->n_chunks * (uint64_t)text->n_ctx;
    const int32_t step = qn_net_is_encoder(&engine->model->net) ? text->n_ctx : engine->n_chunk; /* an encoder's tokens see each other */
    for (int64_t i = 0; i < text->n_chunks; i++) {
        (void)qn_session_rewind(session, NULL, 0);
        for (int32_t at = 0, n; at < text->n_ctx; at += n) {
            n = text->n_ctx - at < step ? text->n_ctx - at : step;
            if (opts->progress && !opts->progress(opts->progress_user, (uint64_t)i * (uint64_t)text->n_ctx + (uint64_t)at, total))
                return qn_fail(err, QN_ERR_CANCELLED, "cancelled after %lld of %lld chunks", (long long)i, (long long)text->n_chunks);
            QN_TRY(qn_session_observe(session, text->token + i * text->n_ctx + at, n, o, err));
        }
    }
    if (opts->progress) (void)opts->progress(opts->progress_user, total, total);
    return QN_OK;
}

/* Has a matrix before it in the stage the same tensor: rows of one that holds q, k and v? Their inputs are the same. */
static bool is_named(const qn_matmul_stage_args *a, int32_t k)
{
    for (int32_t i = 0; i < k; i++)
        if (a->mat[i].w->i_tensor == a->mat[k].w->i_tensor) return true;
    return false;
}

static qn_status fill(qn_imatrix *m, const collector *c, const qn_model *model, qn_err *err)
{
    for (size_t i = 0; i < c->plan->n_stages; i++) {
        const qn_matmul_stage_args *a = &c->plan->stage[i].u.matmul;
        for (int32_t k = 0; c->of[i].sum && k < a->n_mats; k++) {
            qn_tensor_info t;
            if (is_named(a, k)) continue;
            (void)qn_file_tensor_at(model->file, a->mat[k].w->i_tensor, &t);
            qn_imatrix_entry *e = qn_imatrix_add(m, t.name, a->in.width, 1);
            if (!e) return qn_fail(err, QN_ERR_NOMEM, "no memory for the importance data of tensor %.*s", QN_STR_ARG(t.name));
            for (int64_t j = 0; j < a->in.width; j++) e->sum[j] = (float)c->of[i].sum[j];
            e->count[0] = (float)c->of[i].n_rows;
        }
    }
    return qn_imatrix_finish(m, err);
}

static qn_status collect(qn_imatrix *m, qn_engine *engine, const qn_calib *text, const qn_imatrix_opts *opts, qn_err *err)
{
    qn_session *session = NULL;
    collector c = { .plan = &engine->plan, .head = opts->head };
    const qn_observer o = { add_rows, &c };
    qn_status s = open_sums(&c, err);
    if (s == QN_OK) s = qn_session_open(&session, engine, err);
    if (s == QN_OK) s = evaluate(session, engine, text, &o, opts, err);
    if (s == QN_OK) s = fill(m, &c, engine->model, err);
    qn_session_close(&session);
    close_sums(&c);
    m->n_chunks = (uint32_t)text->n_chunks;
    m->chunk_tokens = (uint32_t)text->n_ctx;
    return s;
}

qn_status qn_imatrix_collect(qn_imatrix **out, const qn_model *model, qn_str text, const qn_imatrix_opts *opts, qn_err *err)
{
    qn_imatrix_opts o;
    qn_calib calib;
    qn_engine *engine = NULL;
    *out = NULL;
    QN_TRY(qn_opts_take(&o, sizeof o, opts, "importance data's", err));
    if (o.n_ctx < 0 || o.n_chunks < 0) return qn_fail(err, QN_ERR_ARG, "%d tokens a chunk, %d chunks; neither may be below 0", o.n_ctx, o.n_chunks);
    QN_TRY(qn_calib_open(&calib, model, text, o.n_ctx, o.n_chunks, err));
    const qn_engine_opts eo = { .size = sizeof eo, .n_threads = o.n_threads, .n_ctx = calib.n_ctx, .cpu = o.cpu };
    qn_status s = qn_imatrix_new(out, err);
    if (s == QN_OK) s = qn_engine_open(&engine, model, &eo, err);
    if (s == QN_OK && o.text_name) s = qn_imatrix_add_dataset(*out, (qn_str){ o.text_name, strlen(o.text_name) }, err);
    if (s == QN_OK) s = collect(*out, engine, &calib, &o, err);
    qn_engine_close(&engine);
    qn_calib_close(&calib);
    if (s != QN_OK) qn_imatrix_close(out);
    return s;
}

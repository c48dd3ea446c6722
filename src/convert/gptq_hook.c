#include "src/convert/gptq_hook.h"

#include "quant/gptq.h"
#include "src/base/mem.h"
#include "src/base/opts.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

qn_status qn_gptq_progress(qn_gptq *g, qn_err *err)
{
    if (g->progress && !g->progress(g->progress_user, g->done, g->total)) return qn_fail(err, QN_ERR_CANCELLED, "cancelled");
    g->done++;
    return QN_OK;
}

/* ---- one matrix ---- */

typedef struct matrix_job {
    const qn_gptq *g;
    const qn_weight *w;
    qn_gptq_matrix m;
    uint8_t *out;
    size_t row_bytes;
    float *memory;           /* [n_threads][thread_floats]                                   */
    size_t thread_floats;
    atomic_bool failed;      /* rows that could not be read: their tensor was checked when the file was opened */
} matrix_job;

static void quantize_part(void *arg, int32_t i_thread, int32_t n_threads)
{
    matrix_job *j = arg;
    const size_t n = (size_t)j->m.n_cols;
    float *rows = j->memory + (size_t)i_thread * j->thread_floats, *memory = rows + QN_GPTQ_ROWS * n;
    int64_t begin, end;
    qn_split((j->w->n_rows + QN_GPTQ_ROWS - 1) / QN_GPTQ_ROWS, i_thread, n_threads, &begin, &end);
    for (int64_t p = begin; p < end; p++) {
        const int64_t row = p * QN_GPTQ_ROWS, left = j->w->n_rows - row, n_rows = left < QN_GPTQ_ROWS ? left : QN_GPTQ_ROWS;
        const int64_t at = j->w->first_row + row;
        if (qn_file_rows_f32(qn_model_file(j->g->model), j->w->i_tensor, at, n_rows, rows, NULL) != QN_OK) atomic_store(&j->failed, true);
        qn_gptq_rows(&j->m, rows, n_rows, memory, j->out + (size_t)row * j->row_bytes, j->row_bytes);
    }
}

qn_status qn_gptq_quantize(qn_gptq *g, const qn_gptq_inputs *in, const qn_weight *w, const qn_fmt *fmt, uint8_t *out, size_t row_bytes, qn_err *err)
{
    matrix_job job = {
        .g = g, .w = w, .out = out, .row_bytes = row_bytes,
        .m = { fmt, w->n_cols, in->carry, in->importance, in->gram, g->act_order ? in->order : NULL },
    };
    qn_pool *pool = g->walk.engine->pool;
    job.thread_floats = (QN_GPTQ_ROWS * (size_t)w->n_cols + qn_gptq_floats(&job.m) + 15) & ~(size_t)15;
    job.memory = qn_new((size_t)qn_pool_n_threads(pool), job.thread_floats * sizeof(float));
    if (!job.memory) return qn_fail(err, QN_ERR_NOMEM, "no memory for the rows of a matrix");
    qn_pool_run(pool, quantize_part, &job);
    free(job.memory);
    return atomic_load(&job.failed) ? qn_fail(err, QN_ERR_FORMAT, "rows of a matrix could not be read") : QN_OK;
}

/* ---- one stage ---- */

/* Quantised matrices that a stage runs with, in the place of the model's. */
typedef struct replaced {
    qn_weight w[QN_MAX_MATS];
    void *pages[QN_MAX_MATS];
    int32_t n;
} replaced;

static void replaced_free(replaced *r)
{
    for (int32_t i = 0; i < r->n; i++)
        if (r->pages[i]) qn_pages_free(&r->pages[i], r->w[i].n_bytes);
    r->n = 0;
}

static qn_status replace(qn_gptq *g, replaced *r, qn_mat *mat, const qn_fmt *fmt, const uint8_t *bytes, qn_err *err)
{
    qn_weight *w = &r->w[r->n];
    r->pages[r->n] = NULL;
    if (!qn_weight_describe(w, fmt, mat->w->i_tensor, mat->w->n_rows, mat->w->n_cols)) return qn_fail(err, QN_ERR_NOMEM, "a matrix is too large");
    QN_TRY(qn_pages_new(&r->pages[r->n++], w->n_bytes, "a quantised matrix", err));
    w->panels = r->pages[r->n - 1];
    qn_weight_pack(w, bytes, 0, w->n_panels, g->walk.engine->pool);
    mat->w = w;
    return QN_OK;
}

/* The format that a matrix gets, or NULL: it stays as it is. */
static const qn_fmt *target_of(const qn_gptq *g, int64_t i_tensor)
{
    const qn_fmt *to = g->quantize->job[i_tensor].to;
    return to != qn_quantize_source(g->quantize, i_tensor)->fmt && to->pack ? to : NULL;
}

static qn_status quantize_stage(qn_gptq *g, qn_stage *s, replaced *r, qn_err *err)
{
    qn_matmul_stage_args *a = &s->u.matmul;
    qn_gptq_inputs in = { 0 };
    qn_status status = QN_OK;
    for (int32_t i = 0; i < a->n_mats && status == QN_OK; i++) {
        const qn_weight *w = a->mat[i].w;
        qn_gptq_tensor *t = &g->tensor[w->i_tensor];
        const qn_fmt *fmt = target_of(g, w->i_tensor);
        if (!fmt || t->i_stage != g->walk.i_stage || !qn_fmt_row_bytes(fmt, w->n_cols, &t->row_bytes)) continue;
        if (!in.gram) status = qn_gptq_inputs_open(&in, g, err);
        if (status == QN_OK && !t->bytes && !(t->bytes = qn_new((size_t)t->n_rows, t->row_bytes)))
            status = qn_fail(err, QN_ERR_NOMEM, "no memory for a quantised matrix");
        uint8_t *bytes = t->bytes ? t->bytes + (size_t)w->first_row * t->row_bytes : NULL;
        if (status == QN_OK) status = qn_gptq_quantize(g, &in, w, fmt, bytes, t->row_bytes, err);
        if (status == QN_OK) status = replace(g, r, &a->mat[i], fmt, bytes, err);
        a->in.quantised |= status == QN_OK && qn_weight_reads_a16(a->mat[i].w);
    }
    if (!in.gram) g->done += (uint64_t)g->walk.text.n_chunks; /* nobody looked at its inputs */
    qn_gptq_inputs_close(&in);
    return status;
}

static qn_status pass(qn_gptq *g, qn_err *err)
{
    for (int64_t i = 0; i < g->walk.text.n_chunks; i++) {
        QN_TRY(qn_gptq_progress(g, err));
        qn_walk_pass(&g->walk, i);
    }
    qn_walk_next(&g->walk);
    return QN_OK;
}

/* Quantise what stands, and go on with what has become of it. */
static qn_status do_stage(qn_gptq *g, qn_err *err)
{
    qn_stage *s = qn_walk_stage(&g->walk);
    replaced r = { .n = 0 };
    qn_status status = quantize_stage(g, s, &r, err);
    if (status == QN_OK && s->u.matmul.to_logits) qn_walk_next(&g->walk); /* nobody asks for logits */
    else if (status == QN_OK) status = pass(g, err);
    replaced_free(&r);
    return status;
}

/* ---- the hook ---- */

static void forget_current(qn_gptq *g)
{
    if (g->i_current < 0) return;
    free(g->tensor[g->i_current].bytes);
    g->tensor[g->i_current].bytes = NULL;
    g->i_current = -1;
}

static qn_status begin(void *user, int64_t i_tensor, const qn_tensor_info *info, const qn_fmt *fmt, bool *take, qn_err *err)
{
    qn_gptq *g = user;
    const qn_gptq_tensor *t = &g->tensor[i_tensor];
    (void)info;
    (void)fmt;
    forget_current(g);
    *take = false;
    if (t->i_stage == SIZE_MAX || !target_of(g, i_tensor)) return QN_OK;
    while (g->walk.i_stage <= t->i_stage) QN_TRY(do_stage(g, err));
    *take = t->bytes != NULL;
    if (*take) g->i_current = i_tensor;
    return QN_OK;
}

static qn_status rows(void *user, const float *w, int64_t row, int64_t n_rows, uint8_t *out, qn_err *err)
{
    const qn_gptq *g = user;
    const qn_gptq_tensor *t = &g->tensor[g->i_current];
    (void)w;
    (void)err;
    memcpy(out, t->bytes + (size_t)row * t->row_bytes, (size_t)n_rows * t->row_bytes);
    return QN_OK;
}

/* ---- open and close ---- */

/* A tensor is taken where all its rows are matrices of one stage: several, where q, k and v are one tensor. */
static void keep_whole(qn_gptq *g)
{
    for (int64_t i = 0; i < g->n_tensors; i++) {
        qn_tensor_info t;
        (void)qn_file_tensor_at(qn_model_file(g->model), i, &t);
        if (t.dims[1] * t.dims[2] * t.dims[3] != g->tensor[i].n_rows) g->tensor[i].i_stage = SIZE_MAX;
    }
}

/* Which stage reads a tensor. The embeddings are looked up too, where errors of one column cannot be made good by another: not taken. */
static qn_status find_stages(qn_gptq *g, qn_err *err)
{
    const qn_plan *p = &g->walk.engine->plan;
    g->n_tensors = qn_file_n_tensors(qn_model_file(g->model));
    g->tensor = qn_new((size_t)g->n_tensors, sizeof *g->tensor);
    if (!g->tensor) return qn_fail(err, QN_ERR_NOMEM, "no memory for a list of tensors");
    for (int64_t i = 0; i < g->n_tensors; i++) g->tensor[i].i_stage = SIZE_MAX;
    for (size_t i = 0; i < p->n_stages; i++) {
        const qn_matmul_stage_args *a = &p->stage[i].u.matmul;
        if (p->stage[i].run != qn_op_matmul) continue;
        for (int32_t k = 0; k < a->n_mats; k++) {
            qn_gptq_tensor *t = &g->tensor[a->mat[k].w->i_tensor];
            if (a->mat[k].w == &g->model->net.embed) continue;
            if (t->i_stage != i) t->n_rows = 0;
            t->i_stage = i;
            t->n_rows += a->mat[k].w->n_rows;
        }
        g->total += (a->to_logits ? 1 : 2) * (uint64_t)g->walk.text.n_chunks;
    }
    keep_whole(g);
    return QN_OK;
}

static qn_status open_parts(qn_gptq *g, const char *path, const qn_gptq_opts *o, qn_err *err)
{
    qn_calib text = { 0 };
    const qn_model_opts mo = { .size = sizeof mo, .n_threads = o->n_threads };
    const qn_engine_opts eo = { .size = sizeof eo, .n_threads = o->n_threads, .cpu = o->cpu };
    QN_TRY(qn_model_open(&g->model, path, &mo, err));
    if (qn_file_n_tensors(qn_model_file(g->model)) != g->quantize->n_jobs) return qn_fail(err, QN_ERR_ARG, "%.300s is not the file that is quantised", path);
    QN_TRY(qn_calib_open(&text, g->model, o->text, o->n_ctx, o->n_chunks, err));
    QN_TRY(qn_walk_open(&g->walk, g->model, &text, &eo, err));
    return find_stages(g, err);
}

qn_status qn_gptq_open(qn_gptq **out, qn_quantize *quantize, const char *path, const qn_gptq_opts *opts, qn_err *err)
{
    qn_gptq_opts o;
    *out = NULL;
    QN_TRY(qn_opts_take(&o, sizeof o, opts, "GPTQ", err));
    if (!o.linalg.gram || !o.linalg.factor) return qn_fail(err, QN_ERR_ARG, "GPTQ needs linear algebra");
    if (o.n_ctx < 0 || o.n_chunks < 0 || !(o.damping >= 0 && o.damping <= 1))
        return qn_fail(err, QN_ERR_ARG, "%d tokens a window, %d windows, damping %g; none may be below 0, nor the last above 1", o.n_ctx, o.n_chunks,
                       o.damping);
    qn_gptq *g = qn_new(1, sizeof *g);
    if (!g) return qn_fail(err, QN_ERR_NOMEM, "no memory for GPTQ");
    *g = (qn_gptq){
        .quantize = quantize, .linalg = o.linalg, .i_current = -1, .damping = o.damping > 0 ? o.damping : QN_GPTQ_DAMPING, .act_order = o.act_order,
        .progress = o.progress, .progress_user = o.progress_user,
    };
    const qn_status s = open_parts(g, path, &o, err);
    if (s != QN_OK) {
        qn_gptq_close(&g);
        return s;
    }
    qn_quantize_set_hook(quantize, &(qn_encode_hook){ g, begin, rows });
    *out = g;
    return QN_OK;
}

void qn_gptq_close(qn_gptq **gptq)
{
    qn_gptq *g = *gptq;
    *gptq = NULL;
    if (!g) return;
    qn_quantize_set_hook(g->quantize, NULL);
    for (int64_t i = 0; g->tensor && i < g->n_tensors; i++) free(g->tensor[i].bytes);
    free(g->tensor);
    qn_walk_close(&g->walk);
    qn_model_close(&g->model);
    free(g);
}

#include "src/convert/walk.h"

#include "src/base/mem.h"
#include "src/base/sysmem.h"

#include <stdlib.h>

static size_t next_matmul(const qn_plan *p, size_t i)
{
    while (i < p->n_stages && p->stage[i].run != qn_op_matmul) i++;
    return i;
}

static void run(qn_walk *w, int64_t i_chunk, size_t begin, size_t end)
{
    qn_exec *x = &w->engine->exec;
    const qn_batch batch = {
        .n = w->text.n_ctx, .token = w->text.token + i_chunk * w->text.n_ctx, .position = w->position, .last = w->last, .kv = w->owner,
        .output = w->position, .n_outputs = w->text.n_ctx,
    };
    float *own = w->regs + (size_t)i_chunk * w->chunk_floats;
    for (int r = 0; r < QN_REG_COUNT; r++) {
        x->reg[r] = own;
        own += (size_t)w->text.n_ctx * (size_t)x->stride[r];
    }
    x->batch = &batch;
    (void)qn_kv_rewind(w->kv, 0);
    (void)qn_kv_reserve(w->kv, batch.n); /* the engine is this timeline's alone */
    (void)qn_exec_run_part(x, w->engine->pool, begin, end);
    x->batch = NULL;
}

static qn_status open_parts(qn_walk *w, const qn_model *model, const qn_engine_opts *opts, qn_err *err)
{
    const qn_engine_opts o = { .size = sizeof o, .n_threads = opts->n_threads, .cpu = opts->cpu, .n_ctx = w->text.n_ctx, .n_chunk = w->text.n_ctx };
    const size_t n = (size_t)w->text.n_ctx;
    QN_TRY(qn_engine_open(&w->engine, model, &o, err));
    QN_TRY(qn_kv_open(&w->kv, w->engine->kv_pool, err));
    for (int r = 0; r < QN_REG_COUNT; r++) w->chunk_floats += n * (size_t)w->engine->exec.stride[r];
    w->position = qn_new(n, sizeof *w->position);
    w->last = qn_new(n, sizeof *w->last);
    w->owner = qn_new(n, sizeof *w->owner);
    if (!w->position || !w->last || !w->owner) return qn_fail(err, QN_ERR_NOMEM, "no memory for a calibration text");
    for (int32_t i = 0; i < w->text.n_ctx; i++) {
        w->position[i] = i;
        w->last[i] = w->text.n_ctx - 1;
        w->owner[i] = w->kv;
    }
    if (!qn_size_mul((size_t)w->text.n_chunks, w->chunk_floats * sizeof(float), &w->regs_bytes) || w->regs_bytes > qn_memory_available())
        return qn_fail(err, QN_ERR_NOMEM, "a calibration text of %lld windows takes %.2f GB of memory, and %.2f GB are available",
                       (long long)w->text.n_chunks, (double)w->text.n_chunks * (double)w->chunk_floats * 4e-9, (double)qn_memory_available() * 1e-9);
    return qn_pages_new((void **)&w->regs, w->regs_bytes, "a calibration text on its way", err);
}

qn_status qn_walk_open(qn_walk *w, const qn_model *model, qn_calib *text, const qn_engine_opts *opts, qn_err *err)
{
    *w = (qn_walk){ .text = *text };
    *text = (qn_calib){ 0 };
    const qn_status s = open_parts(w, model, opts, err);
    if (s != QN_OK) {
        qn_walk_close(w);
        return s;
    }
    w->i_stage = next_matmul(&w->engine->plan, 0);
    for (int64_t i = 0; i < w->text.n_chunks; i++) run(w, i, 0, w->i_stage);
    return QN_OK;
}

void qn_walk_close(qn_walk *w)
{
    if (w->regs) qn_pages_free((void **)&w->regs, w->regs_bytes);
    qn_kv_close(&w->kv);
    qn_engine_close(&w->engine);
    qn_calib_close(&w->text);
    free(w->position);
    free(w->last);
    free(w->owner);
    *w = (qn_walk){ 0 };
}

qn_stage *qn_walk_stage(const qn_walk *w)
{
    const qn_plan *p = &w->engine->plan;
    return w->i_stage < p->n_stages ? &p->stage[w->i_stage] : NULL;
}

void qn_walk_observe(qn_walk *w, int64_t i_chunk, const qn_observer *o)
{
    w->engine->exec.observer = o;
    run(w, i_chunk, w->i_stage, w->i_stage + 1);
    w->engine->exec.observer = NULL;
}

void qn_walk_pass(qn_walk *w, int64_t i_chunk)
{
    run(w, i_chunk, w->i_stage, next_matmul(&w->engine->plan, w->i_stage + 1));
}

void qn_walk_next(qn_walk *w)
{
    w->i_stage = next_matmul(&w->engine->plan, w->i_stage + 1);
}

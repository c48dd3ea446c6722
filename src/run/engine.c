#include "src/run/draft.h"
#include "src/run/scheduler.h"
#include "src/run/stats.h"

#include "src/base/mem.h"
#include "src/base/opts.h"
#include "src/base/sysmem.h"

#include <stdlib.h>

qn_status qn_net_kv_layout(const qn_net *net, const qn_kv_row *k, const qn_kv_row *v, int32_t n_ctx, int32_t n_chunk, qn_kv_layout **out, qn_err *err)
{
    qn_kv_layer *layers = qn_new((size_t)net->n_layer, sizeof *layers);
    if (!layers) return qn_fail(err, QN_ERR_NOMEM, "no memory for the layout of the KV cache");
    for (int32_t i = 0; i < net->n_layer; i++) {
        const qn_layer *l = &net->layer[i];
        layers[i] = (qn_kv_layer){ .n_head_kv = l->i_kv == i ? l->n_head_kv : 0, .k_bytes = qn_kv_block_bytes(k, l->head_dim),
                                   .v_bytes = qn_kv_block_bytes(v, l->head_dim_v), .window = l->window, .state_floats = l->state_floats };
    }
    const qn_status s = qn_kv_layout_open(out, layers, net->n_layer, n_ctx, n_chunk, err);
    free(layers);
    return s;
}

static double kv_bytes(const qn_engine *e)
{
    return e->n_timelines * (double)qn_kv_layout_bytes(e->kv_layout);
}

static qn_status check_memory(const qn_engine *e, qn_err *err)
{
    const uint64_t scratch = e->memory_bytes + e->logits_bytes, have = qn_memory_available();
    const double kv = kv_bytes(e), need = kv + (double)scratch;
    if (need <= (double)have) return QN_OK;
    if (kv == 0)
        return qn_fail(err, QN_ERR_NOMEM, "the buffers of a step take %.2f GB of memory, and %.2f GB are available", need / 1e9, (double)have / 1e9);
    const double per_position = kv / e->n_timelines / e->n_ctx;
    const double fits = have > scratch ? (double)(have - scratch) / per_position * 0.9 : 0;
    if (e->n_timelines != 1)
        return qn_fail(err, QN_ERR_NOMEM, "a KV cache for %.0f positions takes %.2f GB of memory, and %.2f GB are available; %.0f positions fit",
                       e->n_timelines * e->n_ctx, need / 1e9, (double)have / 1e9, fits);
    return qn_fail(err, QN_ERR_NOMEM,
                   "a context of %d positions takes %.2f GB of memory, and %.2f GB are available; %.0f positions fit", e->n_ctx,
                   need / 1e9, (double)have / 1e9, fits);
}

/* How many timelines of n_ctx positions the pool has blocks for. */
static qn_status size_kv(qn_engine *e, const qn_engine_opts *o, qn_err *err)
{
    const uint64_t one = qn_kv_layout_bytes(e->kv_layout), memory = o->kv_memory;
    e->n_timelines = e->n_sessions;
    if (!memory) return QN_OK;
    e->n_timelines = (double)memory / (double)one;
    if (e->n_timelines >= 1) return QN_OK;
    return qn_fail(err, QN_ERR_ARG, "%.3f GB for the KV cache do not hold one context of %d positions, which takes %.3f GB; %.0f positions fit",
                   (double)memory / 1e9, e->n_ctx, (double)one / 1e9, e->n_timelines * e->n_ctx);
}

static qn_status open_step(qn_engine *e, qn_err *err)
{
    const size_t n = (size_t)e->n_chunk;
    void *logits = NULL;
    e->token = qn_new(n, sizeof *e->token);
    e->position = qn_new(n, sizeof *e->position);
    e->last = qn_new(n, sizeof *e->last);
    e->output = qn_new(n, sizeof *e->output);
    e->owner = qn_new(n, sizeof *e->owner);
    e->is_other = qn_new(n, sizeof *e->is_other);
    if (!e->token || !e->position || !e->last || !e->output || !e->owner || !e->is_other)
        return qn_fail(err, QN_ERR_NOMEM, "no memory for the tokens of a step");
    QN_TRY(qn_pages_new(&logits, e->logits_bytes, "the logits of a step", err));
    e->logits = logits;
    return QN_OK;
}

/* @param host  the engine that this one drafts for: its threads serve both; or NULL */
static qn_status open_parts(qn_engine *e, const qn_engine_opts *o, int32_t n_threads, const qn_engine *host, bool own_kv, qn_err *err)
{
    const qn_net *net = &e->model->net;
    if (o->act_bits != 0 && o->act_bits != 8 && o->act_bits != 16)
        return qn_fail(err, QN_ERR_ARG, "%d bits for activations; it must be 8 or 16", o->act_bits);
    e->n_ctx = o->n_ctx;
    e->n_chunk = o->n_chunk;
    e->n_sessions = o->n_sessions;
    QN_TRY(qn_resolve_sizes(net, &e->n_ctx, &e->n_chunk, &e->n_sessions, err));
    if (o->n_ctx > net->n_ctx_train && net->n_ctx_train > 0)
        qn_model_note(e->model, "the model was trained with %d positions; beyond them answers may suffer", net->n_ctx_train);
    QN_TRY(qn_kernels_init(&e->kernels, o->cpu, o->exact, err));
    e->kernels.a8 = o->act_bits == 8;
    QN_TRY(qn_kv_row_find(&e->kernels, o->cache_type_k ? o->cache_type_k : net->arch->cache_type, &e->exec.kv_k, err));
    QN_TRY(qn_kv_row_find(&e->kernels, o->cache_type_v ? o->cache_type_v : net->arch->cache_type, &e->exec.kv_v, err));
    QN_TRY(qn_net_plan(net, e->n_ctx, &e->plan, err));
    QN_TRY(qn_net_kv_layout(net, e->exec.kv_k, e->exec.kv_v, e->n_ctx, e->n_chunk, &e->kv_layout, err));
    QN_TRY(size_kv(e, o, err));
    if (host) e->n_timelines = own_kv ? host->n_timelines : 0;
    e->is_guest = host != NULL;
    if (host) e->pool = host->pool;
    else QN_TRY(qn_pool_open(&e->pool, n_threads, err));
    n_threads = qn_pool_n_threads(e->pool);
    e->memory_bytes = qn_exec_bytes(&e->plan, e->n_chunk, e->n_ctx, n_threads);
    e->n_logits = qn_engine_n_logits(e->n_sessions);
    e->logits_bytes = (size_t)e->n_logits * (size_t)net->n_vocab * sizeof(float);
    QN_TRY(check_memory(e, err));
    if (own_kv) QN_TRY(qn_kv_pool_open(&e->kv_pool, e->kv_layout, e->n_timelines, err));
    QN_TRY(open_step(e, err));
    QN_TRY(qn_pages_new(&e->memory, e->memory_bytes, "the buffers of a step", err));
    qn_exec_place(&e->exec, &e->plan, e->n_chunk, e->n_ctx, n_threads, e->memory);
    e->exec.k = &e->kernels;
    if (o->profile && !(e->exec.time = qn_new(e->plan.n_stages, sizeof *e->exec.time)))
        return qn_fail(err, QN_ERR_NOMEM, "no memory for the profile");
    return host ? QN_OK : qn_drafter_open(e, o, err);
}

/* A thread without a CPU of its own makes all others wait for it at every barrier: three on two CPUs decode at a quarter of the speed of two. */
qn_status qn_engine_open(qn_engine **out, const qn_model *model, const qn_engine_opts *opts, qn_err *err)
{
    qn_engine_opts o;
    *out = NULL;
    QN_TRY(qn_opts_take(&o, sizeof o, opts, "engine", err));
    const int32_t most = qn_threads_most(), asked = o.n_threads;
    if (asked < 0 || asked > QN_POOL_MAX) return qn_fail(err, QN_ERR_ARG, "%d threads; it must be 1 to %d, or 0", asked, QN_POOL_MAX);
    return qn_engine_open_threads(out, model, &o, asked < most ? asked : most, err);
}

static qn_status open_engine(qn_engine **out, const qn_model *model, const qn_engine_opts *opts, int32_t n_threads, const qn_engine *host, bool own_kv,
                             qn_err *err)
{
    *out = NULL;
    qn_engine_opts o;
    QN_TRY(qn_opts_take(&o, sizeof o, opts, "engine", err));
    if (!model->has_net) return qn_fail(err, QN_ERR_ARG, "the model was opened for its vocabulary alone");
    qn_engine *e = qn_new(1, sizeof *e);
    if (!e) return qn_fail(err, QN_ERR_NOMEM, "no memory for the engine");
    e->model = model;
    if (pthread_mutex_init(&e->lock, NULL) != 0) {
        free(e);
        return qn_fail(err, QN_ERR_NOMEM, "the system has no lock left for an engine");
    }
    qn_status s = qn_stats_open(&e->stats, err);
    if (s == QN_OK) s = open_parts(e, &o, n_threads, host, own_kv, err);
    if (s != QN_OK) qn_engine_close(&e);
    *out = e;
    return s;
}

qn_status qn_engine_open_threads(qn_engine **out, const qn_model *model, const qn_engine_opts *opts, int32_t n_threads, qn_err *err)
{
    return open_engine(out, model, opts, n_threads, NULL, true, err);
}

qn_status qn_engine_open_guest(qn_engine **out, const qn_model *model, const qn_engine_opts *opts, const qn_engine *host, bool own_kv, qn_err *err)
{
    return open_engine(out, model, opts, 0, host, own_kv, err);
}

void qn_engine_close(qn_engine **engine)
{
    qn_engine *e = *engine;
    if (!e) return;
    qn_scheduler_close(&e->scheduler);
    qn_drafter_close(&e->drafter);
    if (!e->is_guest) qn_pool_close(&e->pool);
    free(e->exec.time);
    void *logits = e->logits;
    qn_pages_free(&logits, e->logits_bytes);
    qn_pages_free(&e->memory, e->memory_bytes);
    free(e->token);
    free(e->position);
    free(e->last);
    free(e->output);
    free(e->owner);
    free(e->is_other);
    qn_kv_pool_close(&e->kv_pool);
    pthread_mutex_destroy(&e->lock);
    qn_stats_close(&e->stats);
    qn_kv_layout_close(&e->kv_layout);
    qn_plan_free(&e->plan);
    free(e);
    *engine = NULL;
}

void qn_engine_get_info(const qn_engine *e, qn_engine_info *out)
{
    uint64_t kv = 0, scratch = 0;
    if (e->drafter) qn_drafter_bytes(e->drafter, &kv, &scratch);
    *out = (qn_engine_info){
        .cpu = e->kernels.level,
        .n_threads = qn_pool_n_threads(e->pool),
        .n_ctx = e->n_ctx,
        .n_chunk = e->n_chunk,
        .n_sessions = e->n_sessions,
        .kv_bytes = (uint64_t)kv_bytes(e) + kv,
        .scratch_bytes = e->memory_bytes + e->logits_bytes + scratch,
        .cache_type_k = qn_fmt_by_id((int32_t)(e->exec.kv_k - e->kernels.kv))->name,
        .cache_type_v = qn_fmt_by_id((int32_t)(e->exec.kv_v - e->kernels.kv))->name,
    };
}

int32_t qn_engine_stage_count(const qn_engine *e)
{
    return e->exec.time ? (int32_t)e->plan.n_stages : 0;
}

bool qn_engine_stage_at(const qn_engine *e, int32_t i, qn_stage_info *out)
{
    if (i < 0 || i >= qn_engine_stage_count(e)) return false;
    const qn_stage *s = &e->plan.stage[i];
    const qn_stage_time *t = &e->exec.time[i];
    *out = (qn_stage_info){ .name = s->name, .i_layer = s->i_layer, .n_runs = t->n_runs, .seconds = t->seconds, .bytes = t->cost.bytes,
                            .mul_adds = t->cost.mul_adds };
    return true;
}

void qn_engine_stage_reset(qn_engine *e)
{
    for (int32_t i = 0; i < qn_engine_stage_count(e); i++) e->exec.time[i] = (qn_stage_time){ 0 };
}

qn_status qn_cpu_peak(const char *level, double *mul_adds_per_second, qn_err *err)
{
    enum { ROUNDS = 20000 }; /* 20 to 500 us: short enough to fall between two interruptions */
    qn_kernels k;
    *mul_adds_per_second = 0;
    QN_TRY(qn_kernels_init(&k, level, false, err));
    for (double start = qn_now(), began = start, end; began - start < 0.02; began = end) {
        const int64_t n = k.peak(ROUNDS);
        end = qn_now();
        const double rate = (double)n / (end - began);
        if (rate > *mul_adds_per_second) *mul_adds_per_second = rate;
    }
    return QN_OK;
}

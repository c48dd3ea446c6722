#include "src/run/engine.h"

#include "src/base/opts.h"

static qn_status add_weight(void *user, qn_weight *w)
{
    *(uint64_t *)user += qn_weight_bytes(w);
    return QN_OK;
}

static qn_status add_vector(void *user, qn_vector *v)
{
    *(uint64_t *)user += qn_vector_bytes(v);
    return QN_OK;
}

static qn_status estimate_kv(const qn_net *net, const qn_engine_opts *o, int32_t n_ctx, int32_t n_chunk, uint64_t *bytes, qn_err *err)
{
    qn_kv_layout *layout = NULL;
    qn_kernels kernels; /* what a format takes is the same on every level */
    const qn_kv_row *k, *v;
    QN_TRY(qn_kernels_init(&kernels, "scalar", true, err));
    QN_TRY(qn_kv_row_find(&kernels, o->cache_type_k ? o->cache_type_k : net->arch->cache_type, &k, err));
    QN_TRY(qn_kv_row_find(&kernels, o->cache_type_v ? o->cache_type_v : net->arch->cache_type, &v, err));
    QN_TRY(qn_net_kv_layout(net, k, v, n_ctx, n_chunk, &layout, err));
    *bytes = qn_kv_layout_bytes(layout);
    qn_kv_layout_close(&layout);
    return QN_OK;
}

static qn_status estimate(qn_net *net, const qn_engine_opts *o, qn_memory_plan *out, qn_err *err)
{
    int32_t n_ctx = o->n_ctx, n_chunk = o->n_chunk, n_sessions = o->n_sessions;
    const int32_t most = qn_threads_most(), n_threads = o->n_threads < 1 ? qn_threads_default() : o->n_threads < most ? o->n_threads : most;
    qn_plan plan = { 0 };
    QN_TRY(qn_resolve_sizes(net, &n_ctx, &n_chunk, &n_sessions, err));
    QN_TRY(qn_net_visit(net, &(qn_net_visitor){ add_weight, add_vector, &out->weight_bytes }));
    QN_TRY(estimate_kv(net, o, n_ctx, n_chunk, &out->kv_bytes, err));
    out->kv_bytes *= (uint64_t)n_sessions;
    const qn_status s = qn_net_plan(net, n_ctx, &plan, err);
    if (s == QN_OK)
        out->scratch_bytes = qn_exec_bytes(&plan, n_chunk, n_ctx, n_threads) + (uint64_t)qn_engine_n_logits(n_sessions) * (uint64_t)net->n_vocab * 4;
    qn_plan_free(&plan);
    return s;
}

/* The vocabulary itself is not needed: its size is the length of the token list, or the rows of the embedding table. */
static int32_t vocab_size(const qn_file *file)
{
    qn_value v;
    qn_tensor_info t;
    if (qn_file_key(file, "tokenizer.ggml.tokens", &v) && v.type == QN_V_ARRAY && v.count <= INT32_MAX) return (int32_t)v.count;
    const int64_t i = qn_file_tensor_find(file, "token_embd.weight");
    return i >= 0 && qn_file_tensor_at(file, i, &t) && t.dims[1] <= INT32_MAX ? (int32_t)t.dims[1] : 0;
}

qn_status qn_memory_estimate(const qn_file *file, const qn_engine_opts *opts, qn_memory_plan *out, qn_err *err)
{
    qn_engine_opts o;
    qn_net net;
    *out = (qn_memory_plan){ 0 };
    QN_TRY(qn_opts_take(&o, sizeof o, opts, "engine", err));
    qn_status s = qn_net_open(&net, file, vocab_size(file), err);
    if (s == QN_OK) s = estimate(&net, &o, out, err);
    qn_net_close(&net);
    return s;
}

/* What an open engine and a session hold. */
#ifndef QN_RUN_ENGINE_H
#define QN_RUN_ENGINE_H

#include "src/ops/exec.h"
#include "src/run/open_model.h"

struct qn_engine {
    const qn_model *model;
    qn_kernels kernels;
    qn_plan plan;
    qn_kv_layout *kv_layout;
    qn_pool *pool;
    qn_exec exec;
    void *memory;            /* the buffers of exec                                          */
    size_t memory_bytes;
    int32_t n_ctx, n_chunk;
};

struct qn_session {
    qn_engine *engine;
    qn_kv *kv;
    int32_t *token;          /* [n_ctx] evaluated so far                                     */
    int32_t n;
    atomic_bool cancel;
    /* the batch of a step, [n_chunk] each */
    int32_t *position, *output;
    qn_kv **owner;
};

/** qn_engine_open with exactly n_threads threads (0: the default), more than there are CPUs too: for tests. */
qn_status qn_engine_open_threads(qn_engine **out, const qn_model *model, const qn_engine_opts *opts, int32_t n_threads, qn_err *err);

/** Evaluate as qn_session_eval_all does, with an observer of every product's rows. No logits are kept: the observer must end the head's stage
 *  by returning false. */
qn_status qn_session_observe(qn_session *s, const int32_t *tokens, int32_t n, const qn_observer *observer, qn_err *err);

/** The KV layout of a network. @param k, v  formats of keys and values */
qn_status qn_net_kv_layout(const qn_net *net, const qn_kv_row *k, const qn_kv_row *v, int32_t n_ctx, int32_t n_chunk, qn_kv_layout **out, qn_err *err);
/** The cache format of a name, in any case; NULL: F16. @return QN_ERR_ARG with those there are */
qn_status qn_kv_row_find(const qn_kernels *k, const char *name, const qn_kv_row **out, qn_err *err);

#endif

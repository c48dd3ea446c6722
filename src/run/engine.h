/* What an open engine and a session hold, and the step that serves them all. */
#ifndef QN_RUN_ENGINE_H
#define QN_RUN_ENGINE_H

#include "src/ops/exec.h"
#include "src/run/open_model.h"

#include <pthread.h>

typedef struct qn_scheduler qn_scheduler;
typedef struct qn_drafter qn_drafter;

enum { QN_DRAFT_MAX = 16 };

/** Totals, under a lock of their own. */
typedef struct qn_stats {
    pthread_mutex_t lock;
    bool is_open;
    qn_engine_stats total;
} qn_stats;

struct qn_engine {
    const qn_model *model;
    qn_kernels kernels;
    qn_plan plan;
    qn_kv_layout *kv_layout;
    qn_kv_pool *kv_pool;
    double n_timelines;      /* of n_ctx positions that the pool has blocks for              */
    qn_pool *pool;
    bool is_guest;           /* the pool is another engine's                                 */
    qn_exec exec;
    void *memory;            /* the buffers of exec                                          */
    size_t memory_bytes;
    int32_t n_ctx, n_chunk, n_sessions;
    float *logits;           /* [n_logits][n_vocab] of a step that chooses tokens            */
    int32_t n_logits;
    size_t logits_bytes;
    /* the batch of a step, [n_chunk] each */
    int32_t *token, *position, *last, *output;
    qn_kv **owner;
    uint8_t *is_other;
    pthread_mutex_t lock;    /* of the KV pool, the buffers and the thread pool: held for a step */
    qn_scheduler *scheduler; /* NULL before the first request                                */
    qn_stats stats;
    qn_drafter *drafter;     /* NULL: no speculation                                         */
};

struct qn_session {
    qn_engine *engine;
    qn_kv *kv;
    atomic_bool cancel;
    char *note;              /* of the file it was loaded from                               */
};

/** Rows of logits that a step may ask for: one a session, and some more for drafts. */
static inline int32_t qn_engine_n_logits(int32_t n_sessions)
{
    return n_sessions + QN_DRAFT_MAX;
}

/** What a step evaluates of one timeline: `n` tokens that follow its position, and logits of the last n_outputs of them. */
typedef struct qn_step_part {
    qn_kv *kv;
    const int32_t *token;
    int32_t n, n_outputs;
    bool outputs_first;      /* of the first n_outputs instead                               */
    int32_t n_other;         /* its last tokens that are of the second token type            */
} qn_step_part;

/**
 * One step: the parts of different timelines side by side, n_chunk tokens at most. The engine's lock is held and positions are reserved.
 * @param logits  [all outputs][n_vocab]; NULL where an observer keeps them from being made
 * @return false: `cancel` was set; no timeline has moved
 */
bool qn_engine_step(qn_engine *e, const qn_step_part *part, int32_t n_parts, float *logits, const atomic_bool *cancel);

/**
 * A step that leaves timelines where they are: its keys and values lie behind their positions until the next step writes over them. States move
 * on; whoever goes back to one has kept it (qn_kv_hold).
 * @param ahead  [n_parts] tokens evaluated so before
 */
void qn_engine_look_ahead(qn_engine *e, const qn_step_part *part, const int32_t *ahead, int32_t n_parts, float *logits);

/** A sentence about a pool without free blocks. @return QN_ERR_CTX_FULL */
qn_status qn_engine_pool_full(const qn_engine *e, qn_err *err);

/** qn_engine_open with exactly n_threads threads (0: the default), more than there are CPUs too: for tests. */
qn_status qn_engine_open_threads(qn_engine **out, const qn_model *model, const qn_engine_opts *opts, int32_t n_threads, qn_err *err);

/**
 * An engine on the threads of another: only one of the two evaluates at a time.
 * @param own_kv  a KV cache for as many timelines; else none, for a model that reads the host's: the layouts must be the same
 */
qn_status qn_engine_open_guest(qn_engine **out, const qn_model *model, const qn_engine_opts *opts, const qn_engine *host, bool own_kv, qn_err *err);

/** Evaluate as qn_session_eval_all does, with an observer of every product's rows. No logits are kept: the observer must end the head's stage
 *  by returning false. */
qn_status qn_session_observe(qn_session *s, const int32_t *tokens, int32_t n, const qn_observer *observer, qn_err *err);

/** The KV layout of a network. @param k, v  formats of keys and values */
qn_status qn_net_kv_layout(const qn_net *net, const qn_kv_row *k, const qn_kv_row *v, int32_t n_ctx, int32_t n_chunk, qn_kv_layout **out, qn_err *err);
/** The cache format of a name, in any case; NULL: F16. @return QN_ERR_ARG with those there are */
qn_status qn_kv_row_find(const qn_kernels *k, const char *name, const qn_kv_row **out, qn_err *err);

#endif

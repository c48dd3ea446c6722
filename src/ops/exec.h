/* One step of a plan: the batch, the buffers, and what each thread has of its own. */
#ifndef QN_OPS_EXEC_H
#define QN_OPS_EXEC_H

#include "simd/kernels.h"
#include "src/base/rank.h"
#include "src/kv/kv.h"
#include "src/ops/plan.h"
#include "src/ops/rows.h"

#include <stdatomic.h>

/** Tokens that are evaluated together; any mix of timelines, the tokens of one timeline contiguous and in order. */
typedef struct qn_batch {
    int32_t n;               /* 1 .. n_chunk                                                 */
    const int32_t *token;    /* [n]                                                          */
    const int32_t *position; /* [n]                                                          */
    const int32_t *last;     /* [n] position of its timeline's last token in the batch       */
    qn_kv *const *kv;        /* [n] timeline of each                                         */
    const uint8_t *is_other; /* [n] 1: of the second token type; NULL: none is                */
    const int32_t *output;   /* [n_outputs] indexes of the tokens whose logits are wanted, ascending */
    int32_t n_outputs;
    float *logits;           /* [n_outputs][n_vocab]                                         */
    const atomic_bool *cancel; /* looked at between layers; may be NULL                      */
} qn_batch;

/** What a stage has cost so far. */
typedef struct qn_stage_time {
    uint64_t n_runs;
    double seconds;
    qn_cost cost;
} qn_stage_time;

/**
 * Is shown the rows that a stage's matrices are about to read: float32, before activations are rounded.
 * Every thread of the pool calls it, each for its share of the work; the rows stay as they are until all have left the stage.
 * @param x  [n_rows], one row every x_stride floats, s->u.matmul.in.width long
 * @return false (all threads alike): the stage ends here, without its products
 */
typedef struct qn_observer {
    bool (*rows)(void *user, const qn_stage *s, const float *x, int64_t x_stride, int32_t n_rows, int32_t i_thread, int32_t n_threads);
    void *user;
} qn_observer;

/** A step's choices at one layer: pairs of a token and one of its experts (src/ops/experts.h), by ascending expert, then token. */
typedef struct qn_pairs {
    int32_t *choice;         /* [n_tokens][n_used] experts of a token, ascending             */
    float *share;            /* [n_tokens][n_used] their weights                             */
    int32_t *token;          /* [n_tokens * n_used] of a pair                                */
    float *weight;           /* [n_tokens * n_used]                                          */
    int32_t *begin;          /* [n_expert + 1] first pair of an expert                       */
} qn_pairs;

typedef struct qn_pairs_bufs {
    qn_pairs shared, *own;   /* own: [n_threads] of up to QN_OWN_ROWS tokens                 */
    float *up;               /* [n_chunk * max_used][up_stride] act(gate) * up of a pair     */
    int64_t up_stride;
    qn_rows rows, *own_rows; /* ... as `down` reads them                                     */
    uint8_t *ready;          /* [plan->n_ready] experts whose matrices this engine knows to be packed */
} qn_pairs_bufs;

struct qn_exec {
    const qn_plan *plan;
    const qn_kernels *k;
    const qn_kv_row *kv_k, *kv_v;   /* formats of the cache                                  */
    const qn_batch *batch;
    int32_t n_chunk, n_ctx;

    float *reg[QN_REG_COUNT];       /* [n_chunk][stride]                                     */
    int64_t stride[QN_REG_COUNT];   /* floats, a multiple of 16                              */
    qn_rows shared;                 /* [n_chunk] rows that matrices read, each made by one thread */
    qn_rows *own;                   /* [n_threads]: [QN_OWN_ROWS] that a thread makes for itself */
    float *angle[QN_MAX_ROPES];     /* [n_chunk][n_rot / 2][cos, sin]                        */
    qn_rows *gathered;              /* [n_threads]: [QN_GATHERED] rows of an expert's tokens, or of a head */
    qn_pairs_bufs pairs;            /* where the plan has experts                            */

    float *scratch;                 /* [n_threads][scratch_stride]: of kernels               */
    int64_t scratch_stride;
    float *tile;                    /* [n_threads][tile_stride]: results on their way        */
    int64_t tile_stride;
    qn_pool *pool;                  /* of the run                                            */
    const qn_observer *observer;    /* of matmul stages; NULL: nobody looks                  */
    qn_stage_time *time;            /* [n_stages], or NULL: not measured                     */
    float *part_o;                  /* [QN_OWN_ROWS][n_parts][stride of O]: attention over parts of a row's positions */
    float *part_m, *part_l;         /* [QN_OWN_ROWS][n_parts][max_heads]                     */
    int32_t n_parts;
    qn_extremes *extremes;          /* [QN_OWN_ROWS][n_groups] of the last step's logits, when at most so many were asked for */
    int32_t n_groups;
    const void **blocks;            /* [n_threads][2][n_blocks]: K and V of a head           */
    int32_t n_blocks;
};

/** Rows in an attention tile: query heads of a group times tokens. Rows that are gathered at a time: what they weigh fits the second-level cache,
 *  and a product reads a weight from memory in the time of four of its rows. */
enum { QN_ATTN_ROWS = 32, QN_GATHERED = 64 };

/** Bytes of all buffers for n_chunk tokens on n_threads threads, in the order that qn_exec_place hands them out. */
size_t qn_exec_bytes(const qn_plan *plan, int32_t n_chunk, int32_t n_ctx, int32_t n_threads);
/** Point the buffers into `memory` (64-byte aligned, qn_exec_bytes long). */
void qn_exec_place(qn_exec *x, const qn_plan *plan, int32_t n_chunk, int32_t n_ctx, int32_t n_threads, void *memory);

/** Floats of a thread's tile of results. */
int64_t qn_tile_floats(int32_t n_chunk);

/** Run every stage on the pool. @return false when the batch was cancelled on the way */
bool qn_exec_run(qn_exec *x, qn_pool *pool);
/** Run stages [begin, end) alone; what those before them have left in the registers must be there. */
bool qn_exec_run_part(qn_exec *x, qn_pool *pool, size_t begin, size_t end);

/* ---- the stages' functions ---- */

typedef void qn_stage_fn(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads);
qn_stage_fn qn_op_embed, qn_op_angles, qn_op_matmul, qn_op_store, qn_op_outputs, qn_op_attend, qn_op_norm, qn_op_temper, qn_op_experts_up,
    qn_op_experts_down, qn_op_by_head, qn_op_latent, qn_op_conv, qn_op_scan, qn_op_selective, qn_op_gate, qn_op_streams_open, qn_op_streams_close,
    qn_op_streams_predict, qn_op_streams_correct, qn_op_streams_spread, qn_op_augment, qn_op_layer_rows, qn_op_sparse, qn_op_xielu;
/** Radians a position of every pair, all scalings in. @param freq [n_rot/2] */
void qn_rope_frequencies(const qn_rope *r, double *freq);

/* what they must read and multiply */
void qn_cost_matmul(const qn_exec *x, const qn_stage *s, qn_cost *c);
void qn_cost_attend(const qn_exec *x, const qn_stage *s, qn_cost *c);
void qn_cost_by_head(const qn_exec *x, const qn_stage *s, qn_cost *c);
void qn_cost_scan(const qn_exec *x, const qn_stage *s, qn_cost *c);
void qn_cost_selective(const qn_exec *x, const qn_stage *s, qn_cost *c);
void qn_cost_experts(const qn_exec *x, const qn_stage *s, qn_cost *c);

/** Tokens of one timeline from token `first` on. */
static inline int32_t qn_batch_run(const qn_batch *b, int32_t first)
{
    int32_t n = 1;
    while (first + n < b->n && b->kv[first + n] == b->kv[first]) n++;
    return n;
}

/** Rows of a stage: the tokens of the batch, or the outputs alone. */
static inline int32_t qn_exec_n_rows(const qn_exec *x, const qn_stage *s)
{
    return s->only_outputs ? x->batch->n_outputs : x->batch->n;
}

/** The token of row i. */
static inline int32_t qn_exec_token(const qn_exec *x, const qn_stage *s, int32_t i)
{
    return s->only_outputs ? x->batch->output[i] : i;
}

static inline float *qn_exec_row(const qn_exec *x, qn_reg r, int32_t i)
{
    return x->reg[r] + (int64_t)i * x->stride[r];
}

static inline float *qn_exec_scratch(const qn_exec *x, int32_t i_thread)
{
    return x->scratch + (int64_t)i_thread * x->scratch_stride;
}

#endif

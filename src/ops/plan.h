/**
 * A model's forward pass as data: a static list of fused stages over named buffers, built once when an engine opens.
 *
 * A stage is one function that every thread of the pool runs on its own part; a barrier stands between two stages. Models (models/)
 * append stages with the qn_plan_* builders; src/run executes them. Split by rows of the output or by tokens, never along a sum.
 *
 * A layer is six stages: norm + QKV | rotate + store | attention | output + residual | norm + gate, up + activation | down + residual.
 * In the last layer, what follows the store is done for the tokens whose logits are asked for alone.
 */
#ifndef QN_OPS_PLAN_H
#define QN_OPS_PLAN_H

#include "src/ops/experts.h"
#include "src/ops/recur.h"
#include "src/ops/temper.h"
#include "src/ops/streams.h"

/** Activations; `act(gate) * up` is a gated unit (Shazeer 2020). */
typedef enum qn_unary {
    QN_UNARY_NONE = 0, QN_UNARY_SILU, QN_UNARY_GELU, QN_UNARY_RELU, QN_UNARY_RELU_SQR,
    QN_UNARY_CLAMPED, /* of gates alone: src/ops/glu.c                                       */
    QN_UNARY_GELU_HALF, /* GELU from half floats to half floats                              */
} qn_unary;

/** Angles of rotary position embedding (Su et al. 2021); which pairs turn is `neox`. */
typedef struct qn_rope {
    int32_t n_rot;           /* leading dimensions of a head that turn; 0: none              */
    bool neox;               /* pairs (i, i + n_rot/2), else (2i, 2i + 1)                    */
    double base;
    double freq_scale;       /* 1 / factor of linear scaling (also YaRN's)                   */
    const float *factors;    /* [n_rot/2] divisors of the frequencies, or NULL               */
    /* YaRN (Peng et al. 2023); ext_factor 0: off */
    double ext_factor, attn_factor, beta_fast, beta_slow;
    int32_t n_ctx_orig;
    int32_t sections[4];     /* of the pairs, over and over: time, height, width, extra. In a text all are the position but the last, which stays */
} qn_rope;
enum { QN_MAX_ROPES = 4 };

typedef struct qn_plan qn_plan;
typedef struct qn_exec qn_exec;

/* ---- arguments of the stages ---- */

typedef struct qn_embed_args {
    const qn_weight *table;
    const qn_weight *positions; /* a row for each position, added; NULL: none                */
    const float *type;       /* [n_embd] added to every row, or NULL                         */
    const float *other_type; /* ... to those of the batch's other type                       */
    float scale;
} qn_embed_args;

typedef struct qn_outputs_args {
    qn_reg x;                /* where the residual stream is                                 */
    qn_reg also, waiting;    /* what else the stages behind read; waiting: X for nothing     */
} qn_outputs_args;

/** A norm of a register's rows, in place or into another register. */
typedef struct qn_norm_args {
    qn_reg from, at;
    qn_norm norm;
    int64_t width;
} qn_norm_args;

/** A register's rows times a factor of their position, in place. */
typedef struct qn_temper_args {
    qn_reg at;
    qn_temper temper;
    int64_t width;
} qn_temper_args;

typedef struct qn_mat {
    const qn_weight *w;
    const float *bias;       /* [n_rows] or NULL                                             */
    qn_reg out;
    float clamp;             /* the result is kept within -clamp and clamp; 0: as it is      */
    qn_unary act;            /* then it goes through this                                    */
    float most;              /* of a gate that goes through SiLU: limits of qn_glu_limited_row; 0: none */
    bool multiplied;         /* then times these columns of the batch's tokens               */
    qn_cols by;
    bool adds;               /* then it is added, times `scale`, to what `out` holds         */
    float scale;
    bool gated;              /* ... and times sigmoid(the first float of `gate`)             */
    qn_reg gate;
} qn_mat;
enum { QN_MAX_MATS = 4 };

typedef struct qn_matmul_stage_args {
    qn_input in;
    qn_mat mat[QN_MAX_MATS]; /* all read the same rows                                       */
    int32_t n_mats;
    qn_unary glu;            /* not NONE: glu(mat[0]) * mat[1] is the result, into mat[0].out */
    bool to_logits;
    float softcap;           /* logits only; 0: none                                         */
    float logit_scale;       /* 1: none                                                      */
} qn_matmul_stage_args;

typedef struct qn_experts_args {
    qn_input in;             /* of "experts up"                                              */
    qn_experts experts;
    qn_unary glu;
    qn_reg out;              /* where a token's sum goes, times scale; its way there is T    */
    bool adds;               /* ... and is added to what is there                            */
    float scale;
    bool down_quantised;     /* `down` reads integers                                        */
    int64_t first_ready;     /* of qn_pairs_bufs.ready                                       */
} qn_experts_args;

typedef struct qn_heads {
    int32_t n_head, n_head_kv, head_dim, head_dim_v;
    int32_t window;          /* 0: all positions                                             */
    bool chunked;            /* the window is that of positions with the same position / window */
    bool around;             /* of one that sees all: half of the window lies before it, half behind */
    bool sees_all;           /* later positions too: all of a text is in one step            */
    int32_t i_rope;          /* which angles; -1: none                                       */
    int32_t i_kv;            /* layer number in the KV cache                                 */
    float scale;             /* of the queries                                               */
    qn_temper temper;        /* of the queries                                               */
    float softcap;           /* of the scores; 0: none                                       */
    float max_bias;          /* of linear position biases: -log2 of the smallest slope (src/ops/alibi.h); 0: none */
    const float *sinks;      /* [n_head] or NULL                                             */
    qn_norm q_norm, k_norm;  /* over a head, before the rotation                             */
    bool norm_late;          /* they are over the rotated head                               */
    bool norm_v;             /* values are divided by their root mean square, of k_norm.eps  */
    bool v_is_k;             /* values are the keys, before their norm and rotation          */
    bool only_reads;         /* keys and values are those that layer i_kv has stored         */
    int32_t norm_stride;     /* floats from one head's norm weights to the next's; 0: all have the same */
    bool q_gated;            /* queries come from G, each head's followed by its gate (qn_plan_gate) */
} qn_heads;

/**
 * A gated unit of few: gates above mean + deviations * (standard deviation of the row) count with what they have more than that, the others
 * not at all (You et al. 2025, "Spark Transformer"). at = act(gate) * up, in the gates' place.
 */
typedef struct qn_sparse_args {
    qn_reg at, up;
    int64_t width;
    float deviations;
    qn_unary act;
} qn_sparse_args;

/** Huang and Schlag 2024, "xIELU": positive * x^2 + beta * x above zero, negative * (exp(min(x, most)) - 1 - x) + beta * x below. */
typedef struct qn_xielu {
    float positive, negative, beta, most;
} qn_xielu;

/** The activation of a register's rows, in place. */
typedef struct qn_xielu_args {
    qn_reg at;
    int64_t width;
    qn_xielu xielu;
} qn_xielu_args;

/** A matrix for each head times that head's row: out[head] = w[head] in[head] * scale. */
typedef struct qn_by_head_args {
    const qn_weight *w;      /* a part a head                                                */
    qn_reg in, out;
    int64_t in_at, out_at;   /* floats before the first head's row                           */
    int64_t in_stride, out_stride; /* floats from one head's row to the next; in_stride 0: all read the same */
    float scale;
    bool quantised;          /* w reads integers                                             */
} qn_by_head_args;

/**
 * Latent attention (DeepSeek-AI 2024): one key and value for all heads, the normed latent of head_dim_v dimensions; keys have some more, which
 * rotate. What makes keys and values of a latent for each head is multiplied into the queries and the result instead. Register K holds the
 * latent and what rotates.
 */
typedef struct qn_latent_args {
    qn_heads heads;          /* n_head_kv 1; k_norm is the latent's                          */
    qn_reg q;                /* queries: of each head n_plain dimensions, then those that rotate */
    int32_t n_plain;
} qn_latent_args;

/** What the hardware must do at least. */
typedef struct qn_cost {
    double bytes;            /* weights and cache                                            */
    double mul_adds;
} qn_cost;

typedef struct qn_stage {
    const char *name;
    int32_t i_layer;         /* -1: outside the layers                                       */
    void (*run)(const qn_exec *x, const struct qn_stage *s, int32_t i_thread, int32_t n_threads);
    void (*cost)(const qn_exec *x, const struct qn_stage *s, qn_cost *c); /* of the batch at hand; NULL: nothing to speak of */
    bool only_outputs;       /* rows are the tokens whose logits are asked for               */
    bool joined;             /* no barrier behind it: the next stage reads nothing of it     */
    union {
        qn_embed_args embed;
        qn_outputs_args outputs;
        qn_norm_args norm;
        qn_temper_args temper;
        qn_matmul_stage_args matmul;
        qn_experts_args experts;
        qn_heads heads;
        qn_by_head_args by_head;
        qn_latent_args latent;
        qn_conv_stage_args conv;
        qn_scan_stage_args scan;
        qn_selective_stage_args selective;
        qn_gate_stage_args gate;
        qn_streams streams;
        qn_stream_step stream_step;
        qn_stream_spread stream_spread;
        qn_augment_args augment;
        qn_layer_rows_args layer_rows;
        qn_sparse_args sparse;
        qn_xielu_args xielu;
    } u;
} qn_stage;

struct qn_plan {
    qn_stage *stage;
    size_t n_stages, cap_stages;
    int64_t width[QN_REG_COUNT];
    int64_t row_width;       /* widest row that matrices read                                */
    int64_t n_logits;
    int64_t norm_width;      /* widest of those that a norm makes                            */
    int32_t max_head_dim, max_heads;
    int64_t scratch_width;   /* floats that a thread has to itself in other stages           */
    int64_t gather_width;    /* widest row that a thread gathers; 0: none                    */
    int64_t pair_width;      /* widest row between the two stages of experts; 0: there are none */
    int32_t max_experts, max_used; /* of a layer                                             */
    int64_t n_ready;         /* experts of all layers                                        */
    qn_rope rope[QN_MAX_ROPES];
    double *freq[QN_MAX_ROPES]; /* [n_rot/2] radians a position                              */
    int32_t n_ropes;
    /* of the stages that are being added */
    int32_t i_layer;
    bool only_outputs;
    qn_reg x;                /* where the residual stream is                                 */
    qn_reg waiting;          /* a result whose last step comes after that of another part; X: none */
    bool failed;             /* memory ran short; qn_plan_finish reports it                  */
};

/* ---- builders; each appends one stage ---- */

void qn_plan_embed(qn_plan *p, const qn_embed_args *a);
void qn_plan_rope(qn_plan *p, const qn_rope *ropes, int32_t n_ropes);
/** Rows for qn_plan_matmul: pre(x), where first x += post(t). Either norm may be NONE. The residual stream moves with a post-norm. */
qn_input qn_plan_normed(qn_plan *p, const qn_norm *post, const qn_norm *pre, int64_t width);
/** Rows of `from` as they are. */
qn_input qn_plan_rows(qn_reg from, int64_t width);
/** @param glu  not NONE: two matrices of one shape, gate and up */
void qn_plan_matmul(qn_plan *p, const char *name, const qn_input *in, const qn_mat *mats, int32_t n_mats, qn_unary glu);
/** The same rows for another stage of the same half: a post-norm has been applied, and is not again. */
qn_input qn_plan_again(const qn_input *in);
/** The stage that was added last shares nothing with the next one: no barrier between them. */
void qn_plan_join(qn_plan *p);
/** A norm of the rows of a register, in place. */
void qn_plan_norm(qn_plan *p, const char *name, qn_reg at, const qn_norm *norm, int64_t width);
/** The same into another register. */
void qn_plan_norm_of(qn_plan *p, const char *name, qn_reg from, qn_reg at, const qn_norm *norm, int64_t width);
/** A factor of each row's position, in place; nothing where there is none. */
void qn_plan_temper(qn_plan *p, qn_reg at, const qn_temper *temper, int64_t width);
/** Where a half of a block puts its result. */
typedef struct qn_close_to {
    bool post_norm;          /* into T, whence a norm takes it; else it is added to the residual stream */
    qn_reg aside;            /* of a matrix: with post_norm, there instead; X: T              */
    float scale;             /* of what is added                                             */
} qn_close_to;
/** A matrix whose result goes into the residual stream, at once or, where a post-norm follows, by way of T. */
void qn_plan_close(qn_plan *p, const char *name, const qn_input *in, const qn_weight *w, const float *bias, const qn_close_to *to);
/** Experts, chosen by the logits that are in register R (src/ops/experts.h); the two stages belong together, one layer's at a time. */
void qn_plan_experts_up(qn_plan *p, const qn_input *in, const qn_experts *e, qn_unary glu);
void qn_plan_experts_down(qn_plan *p, const qn_experts *e, const qn_close_to *to);
/** Norm and rotate q and k, write k and v to the cache. */
void qn_plan_store(qn_plan *p, const qn_heads *h);
/** A matrix for each head: in_stride and out_stride are those of one head. */
void qn_plan_by_head(qn_plan *p, const char *name, const qn_by_head_args *a);
/** Rotate what rotates, norm the latent, and write it to the cache. Queries go to Q, head_dim a head, of which the first head_dim_v come from
 *  elsewhere. */
void qn_plan_latent(qn_plan *p, const qn_latent_args *a);
/** From here on only tokens whose logits are asked for: their rows of the residual stream and of `also` move to the front. In the last layer, once
 *  everything that later tokens need is stored. */
void qn_plan_only_outputs(qn_plan *p, qn_reg also);
void qn_plan_attend(qn_plan *p, const qn_heads *h);
/** @param bias  [n_vocab] or NULL */
void qn_plan_head(qn_plan *p, const qn_input *in, const qn_weight *head, const float *bias, float softcap, float logit_scale);

/* of layers with a state (src/ops/recur.h) */
void qn_plan_conv(qn_plan *p, const qn_conv_stage_args *a);
void qn_plan_scan(qn_plan *p, const qn_scan_stage_args *a);
void qn_plan_selective(qn_plan *p, const qn_selective_stage_args *a);
void qn_plan_gate(qn_plan *p, const qn_gate_stage_args *a);

/* of several residual streams (src/ops/streams.h) */
void qn_plan_streams_open(qn_plan *p, const qn_streams *u);
void qn_plan_streams_close(qn_plan *p, const qn_streams *u);
void qn_plan_predict(qn_plan *p, const qn_streams *u, const qn_stream_router *by);
/** @param post  between T and the residual stream; not NONE  @param scale  [width] or NULL */
void qn_plan_correct(qn_plan *p, const qn_streams *u, const qn_stream_router *by, const qn_norm *post, const float *scale);
void qn_plan_spread(qn_plan *p, const qn_streams *u, const qn_norm *norm);
/** Residual stream += own(residual stream) + post(from). */
void qn_plan_augment(qn_plan *p, qn_reg from, const qn_norm *own, const qn_norm *post, int64_t width);
/** at = own(at) + post(from); either norm may be NONE. */
void qn_plan_sum(qn_plan *p, qn_reg at, const qn_norm *own, qn_reg from, const qn_norm *post, int64_t width);
void qn_plan_layer_rows(qn_plan *p, const qn_layer_rows_args *a);
void qn_plan_sparse(qn_plan *p, const qn_sparse_args *a);
void qn_plan_xielu(qn_plan *p, const qn_xielu_args *a);

/** For builders: a stage behind the others, NULL when memory is short; a register that is at least so wide. */
qn_stage *qn_plan_append(qn_plan *p, const char *name, void (*run)(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads));
void qn_plan_widen(qn_plan *p, qn_reg r, int64_t width);

qn_status qn_plan_finish(const qn_plan *p, qn_err *err);
void qn_plan_free(qn_plan *p);

#endif

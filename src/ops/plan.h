/**
 * A model's forward pass as data: a static list of stages over named buffers, built once when an engine opens.
 *
 * A stage is one function that every thread of the pool runs on its own part; a barrier stands between two stages. Models (models/)
 * append stages with the qn_plan_* builders; src/run executes them. Split by rows of the output or by tokens, never along a sum.
 */
#ifndef QN_OPS_PLAN_H
#define QN_OPS_PLAN_H

#include "src/ops/weight.h"

/** Buffers of a step, [n_tokens][width] float32. */
typedef enum qn_reg {
    QN_REG_X = 0,   /* residual stream                                                       */
    QN_REG_N,       /* normed rows: input of the next matrices                               */
    QN_REG_Q, QN_REG_K, QN_REG_V,
    QN_REG_O,       /* attention's result                                                    */
    QN_REG_T,       /* a matrix's result on its way into the residual stream                 */
    QN_REG_G, QN_REG_U, /* gate and up                                                       */
    QN_REG_COUNT,
} qn_reg;

typedef enum qn_norm_kind { QN_NORM_NONE = 0, QN_NORM_RMS, QN_NORM_LAYER } qn_norm_kind;
typedef enum qn_glu_kind { QN_GLU_SILU = 0, QN_GLU_GELU } qn_glu_kind;

typedef struct qn_norm {
    qn_norm_kind kind;
    float eps;
    const float *w, *b;      /* [width] or NULL                                              */
} qn_norm;

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
} qn_rope;
enum { QN_MAX_ROPES = 2 };

typedef struct qn_plan qn_plan;
typedef struct qn_exec qn_exec;

/* ---- arguments of the stages ---- */

typedef struct qn_embed_args {
    const qn_weight *table;
    float scale;
} qn_embed_args;

/** x += post(t) (where post.kind), then act = pre(x). Reads `from`; with `post` none, x is left alone. */
typedef struct qn_prepare_args {
    qn_reg from;             /* what is normed, and what `post` adds                         */
    qn_norm post;            /* NONE: nothing is added                                       */
    qn_norm pre;             /* NONE: the rows of `from` as they are                         */
    int64_t width;
    bool only_outputs;       /* only the rows whose logits are asked for, moved together     */
} qn_prepare_args;

typedef struct qn_glu_args {
    qn_glu_kind kind;
    int64_t width;
} qn_glu_args;

typedef struct qn_mat {
    const qn_weight *w;
    const float *bias;       /* [n_rows] or NULL                                             */
    qn_reg out;
    bool add_to_x;           /* the result is added to the residual stream                   */
} qn_mat;
enum { QN_MAX_MATS = 4 };

typedef struct qn_matmul_stage_args {
    qn_mat mat[QN_MAX_MATS]; /* all read the prepared rows                                   */
    int32_t n_mats;
    bool to_logits;
    float softcap;           /* logits only; 0: none                                         */
    float logit_scale;       /* 1: none                                                      */
} qn_matmul_stage_args;

typedef struct qn_heads {
    int32_t n_head, n_head_kv, head_dim, head_dim_v;
    int32_t window;          /* 0: all positions                                             */
    int32_t i_rope;          /* which angles; -1: none                                       */
    int32_t i_kv;            /* layer number in the KV cache                                 */
    float scale;             /* of the queries                                               */
    float softcap;           /* of the scores; 0: none                                       */
    const float *sinks;      /* [n_head] or NULL                                             */
    qn_norm q_norm, k_norm;  /* over a head, before the rotation                             */
} qn_heads;

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
    bool want_f32, want_a16; /* of a stage that prepares rows: what the next matrices read   */
    union {
        qn_embed_args embed;
        qn_prepare_args prepare;
        qn_glu_args glu;
        qn_matmul_stage_args matmul;
        qn_heads heads;
    } u;
} qn_stage;

struct qn_plan {
    qn_stage *stage;
    size_t n_stages, cap_stages;
    size_t i_preparer;       /* stage that prepares the rows of the next matrices            */
    int64_t width[QN_REG_COUNT];
    int64_t act_width;       /* widest row that matrices read                                */
    int32_t max_head_dim;
    qn_rope rope[QN_MAX_ROPES];
    int32_t n_ropes;
    int32_t i_layer;         /* that stages are being added for                              */
    bool failed;             /* memory ran short; qn_plan_finish reports it                  */
};

/* ---- builders; each appends one stage ---- */

void qn_plan_embed(qn_plan *p, const qn_weight *table, float scale);
void qn_plan_rope(qn_plan *p, const qn_rope *ropes, int32_t n_ropes);
/** act = pre(x): the rows that the matrices after it read, in the forms that they want. */
void qn_plan_norm(qn_plan *p, const qn_norm *pre, int64_t width);
/** x += post(t), then act = pre(x). */
void qn_plan_add_norm(qn_plan *p, const qn_norm *post, const qn_norm *pre, int64_t width);
/** act = rows of `from` as they are. */
void qn_plan_rows(qn_plan *p, qn_reg from, int64_t width);
/** act = glu(g, u). */
void qn_plan_glu(qn_plan *p, qn_glu_kind kind, int64_t width);
void qn_plan_matmul(qn_plan *p, const char *name, const qn_mat *mats, int32_t n_mats);
/** Norm and rotate q and k, write k and v to the cache. */
void qn_plan_store(qn_plan *p, const qn_heads *h);
void qn_plan_attend(qn_plan *p, const qn_heads *h);
/** The same as qn_plan_norm over the rows whose logits are asked for, and the product that gives them. `post` as in add_norm. */
void qn_plan_head(qn_plan *p, const qn_norm *post, const qn_norm *pre, int64_t width, const qn_weight *head, float softcap,
                  float logit_scale);

qn_status qn_plan_finish(const qn_plan *p, qn_err *err);
void qn_plan_free(qn_plan *p);

#endif

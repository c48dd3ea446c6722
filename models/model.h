/**
 * A model: hyperparameters, tensors, and the forward pass as a plan of stages.
 *
 * An architecture is one file, models/arch_<name>.c, with one `qn_arch`: what its blocks are made of, the keys it reads beyond the shared ones, tensors
 * of its own, and, where a rule of its needs code, a hook. A block has two halves, each a `qn_part` in a file of its own (models/mix_<name>.c, what
 * mixes tokens; models/ff_<name>.c, the feed-forward): keys, tensors and stages. models/block.c puts the halves together and knows none of them by
 * name. models/README.md shows how to add an architecture or a part.
 */
#ifndef QN_MODEL_H
#define QN_MODEL_H

#include "src/ops/plan.h"

enum { QN_MAX_LAYERS = 1024, QN_MAX_HEAD_DIM = 1024, QN_MAX_SPLITS = 3, QN_MAX_OTHERS = 4, QN_MAX_ALIBI_BIAS = 1024, QN_MAX_LABELS = 1 << 16 };

/** Values of <architecture>.pooling_type. */
enum { QN_FILE_POOLING_NONE = 0, QN_FILE_POOLING_MEAN, QN_FILE_POOLING_CLS, QN_FILE_POOLING_LAST, QN_FILE_POOLING_RANK };

/** What blocks are made of; a layer starts with those of its architecture and may differ (qn_layer.features). */
enum {
    QN_F_QKV_BIAS = 1u << 0,       /* q, k and v must have biases; elsewhere they may               */
    QN_F_OUT_BIAS = 1u << 1,       /* the output matrix of the mixer must have a bias; elsewhere it may */
    QN_F_FF_BIAS = 1u << 2,        /* all matrices of the feed-forward have biases                  */
    QN_F_BIAS_OPTIONAL = 1u << 3,  /* every matrix may have a bias: the file tells                  */
    QN_F_QKV_FUSED = 1u << 4,      /* q, k and v are rows of one tensor (the file tells, this is what new files have) */
    QN_F_GATE_UP_FUSED = 1u << 5,  /* gate and up of the dense feed-forward are rows of ffn_up      */
    QN_F_NO_GATE = 1u << 6,        /* feed-forward is act(up), not act(gate) * up                   */
    QN_F_LAYER_NORM = 1u << 7,     /* norms take the mean off (LayerNorm); else RMS                 */
    QN_F_NORM_BIAS = 1u << 8,      /* norms have biases                                             */
    QN_F_NORM_PLAIN = 1u << 9,     /* norms have no tensors at all                                  */
    QN_F_NO_PRE_NORM = 1u << 10,   /* no norms before the halves of a block                         */
    QN_F_POST_NORM = 1u << 11,     /* norms after the halves, before the residual                   */
    QN_F_PARALLEL = 1u << 12,      /* both halves read the same residual stream                     */
    QN_F_ONE_NORM = 1u << 13,      /* ... and the same norm of it                                   */
    QN_F_QK_NORM = 1u << 14,       /* norm over each head of q and k, one weight for all heads      */
    QN_F_QK_NORM_HEADS = 1u << 15, /* ... each head its own weights                                 */
    QN_F_QK_NORM_WIDE = 1u << 16,  /* ... over all heads together                                   */
    QN_F_QK_NORM_OPTIONAL = 1u << 17, /* the file tells whether there are q and k norms at all      */
    QN_F_ROPE_NEOX = 1u << 18,     /* rotated pairs are half a head apart                           */
    QN_F_NO_ROPE = 1u << 19,       /* nothing is rotated                                            */
    QN_F_EMBED_SQRT = 1u << 20,    /* embeddings times sqrt(n_embd)                                 */
    QN_F_EMBED_NORM = 1u << 21,    /* a norm behind the embedding                                   */
    QN_F_POSITIONS = 1u << 22,     /* a learned embedding for each position                         */
    QN_F_HEAD_BIAS = 1u << 23,     /* the output head must have a bias; elsewhere it may            */
    QN_F_EXPERT_BIAS = 1u << 25,   /* router and experts have biases                                */
    QN_F_SHARED_EXPERT = 1u << 26, /* beside the chosen experts one that every token takes          */
    QN_F_SHARED_GATE = 1u << 27,   /* ... with a gate of its own                                    */
    QN_F_QUERY_LATENT = 1u << 28,  /* latent attention: queries come of a latent too                */
    QN_F_SINKS = 1u << 29,         /* attention with a sink for each head                           */
    QN_F_FF_NORM_NAMED_POST = 1u << 30, /* the norm before the feed-forward is called post_attention_norm */
    QN_F_TIED = 1u << 24,          /* the output head is always the embedding table                 */
};

/* Beyond the range of an enum. */
#define QN_F_NORMS_SWAPPED ((uint64_t)1 << 32) /* side by side with two norms: the mixer reads the second */
#define QN_F_NORM_AFTER ((uint64_t)1 << 33)    /* a norm of the residual stream behind each half          */
#define QN_F_ENCODER ((uint64_t)1 << 34)       /* all positions see each other; the model has no next token */
#define QN_F_TOKEN_TYPES ((uint64_t)1 << 35)   /* embeddings of token types, of which every token has the first */
#define QN_F_QK_NORM_LATE ((uint64_t)1 << 36)  /* the norms of q and k come behind the rotation               */
#define QN_F_ALIBI ((uint64_t)1 << 37)         /* linear position biases; the largest is 8 where no key says  */
#define QN_F_NORM_BIAS_OPTIONAL ((uint64_t)1 << 38) /* norms may have biases: the file tells                  */
#define QN_F_ATTN_GATE ((uint64_t)1 << 39)     /* attention's result is gated by a matrix of its own          */
#define QN_F_V_NORM ((uint64_t)1 << 40)        /* values are divided by their root mean square                */
#define QN_F_KV_SHARED ((uint64_t)1 << 41)     /* a layer that attends to keys and values of another          */
#define QN_F_STREAMS ((uint64_t)1 << 42)       /* several residual streams: layers have qn_around_altup       */
#define QN_F_LAYER_ROWS ((uint64_t)1 << 43)    /* tokens have a row for each layer: layers have qn_ff_layer_rows */
#define QN_F_QK_NORM_PLAIN ((uint64_t)1 << 44) /* norms of each head of q and k without weights               */
#define QN_F_NO_TEMP ((uint64_t)1 << 45)       /* queries of this layer do not grow with the position         */
#define QN_F_EXPERTS_FUSED ((uint64_t)1 << 49) /* gate and up of an expert are rows of one tensor             */
#define QN_F_FF_BESIDE ((uint64_t)1 << 50)     /* layers have qn_layer.ff_beside                              */
#define QN_F_OUT_SCALE ((uint64_t)1 << 48)     /* layers may have a factor of what they leave: the file tells  */
#define QN_F_V_IS_K ((uint64_t)1 << 47)        /* values are the keys, before the norm and the rotation       */
#define QN_F_XIELU ((uint64_t)1 << 46)         /* the feed-forward's activation has parameters of the layer    */
#define QN_F_WINDOW_AROUND ((uint64_t)1 << 51) /* half of an encoder's window lies before a token, half behind it */
#define QN_F_NO_MIXER_NORM ((uint64_t)1 << 52) /* the mixer reads the residual stream as it is                */
#define QN_F_NORM_TWICE ((uint64_t)1 << 53)    /* with QN_F_NORM_AFTER: the mixer's input is added to its normed result, and the sum normed again */
#define QN_F_SUB_NORM ((uint64_t)1 << 54)      /* a norm before the last matrix of each half      */
#define QN_F_SHARED_DENSE ((uint64_t)1 << 55)  /* the shared expert is called as a dense feed-forward */
#define QN_F_POST_FFW ((uint64_t)1 << 56)      /* of files with one of two names for it: post_ffw_norm */
#define QN_F_SHARED_FUSED ((uint64_t)1 << 57)  /* the shared expert's gate and up are rows of its ffn_up */
#define QN_F_GATE_OF_HEAD ((uint64_t)1 << 58)  /* with QN_F_ATTN_GATE: one number a head                  */
#define QN_F_GATE_SOFTPLUS ((uint64_t)1 << 59) /* with QN_F_ATTN_GATE: by softplus, not sigmoid           */

typedef struct qn_net qn_net;
typedef struct qn_arch qn_arch;
typedef struct qn_part qn_part;

/** What a layer has of experts (models/ff_experts.c). */
typedef struct qn_layer_experts {
    int32_t n, n_used, n_ff;
    int32_t n_shared, n_ff_shared; /* of the one that every token takes; 0: there is none    */
    qn_weight router, gate, up, down, shared_router, shared_gate, shared_up, shared_down;
    qn_vector router_b, choice_b, gate_b, up_b, down_b;
    /* beside a dense feed-forward: norms before and behind, of the router's rows and behind the other; a factor of each expert's result */
    qn_vector norm, post_norm, router_norm, other_post_norm, down_scale;
} qn_layer_experts;

/** What a layer has of latent attention (models/mix_latent.c), where head_dim is a key's size in the cache, head_dim_v the latent's. */
typedef struct qn_layer_latent {
    int32_t n_key, n_value;      /* dimensions of a head                                     */
    int32_t n_query;             /* of the queries' own latent; 0: they have none            */
    qn_weight wq_a, wk_b;
} qn_layer_latent;

/** What a layer has of a state (models/mix_selective.c, mix_ssm.c, mix_delta.c, mix_shortconv.c). */
typedef struct qn_layer_recur {
    int32_t n_taps;              /* tokens that the convolution sees                         */
    int32_t d_inner, d_state, n_group;
    int32_t n_dt;                /* heads; of selective state spaces: the rank of the steps  */
    int32_t norms_steps;         /* selective: steps, B and C are normed, without weights    */
    int32_t by_key;              /* delta: rates of the heads of a key head lie together     */
    qn_weight in, z, beta, alpha, x, dt, out;
    qn_vector conv, conv_b, dt_b, a, d, norm, dt_norm, b_norm, c_norm;
} qn_layer_recur;

/** What a layer has around it, beside its mixer, and behind its feed-forward. */
typedef struct qn_layer_altup {
    qn_vector router, router_norm, predict, correct, scale;
} qn_layer_altup;
typedef struct qn_layer_laurel {
    int32_t rank;
    qn_weight left, right;
    qn_vector norm;
} qn_layer_laurel;
typedef struct qn_layer_own_rows {
    qn_weight gate, proj;
    qn_vector norm;
} qn_layer_own_rows;

typedef struct qn_layer {
    const qn_part *mixer, *ff;   /* NULL: the block has no such half                         */
    const qn_part *ff_beside;    /* a second feed-forward, with norms of its own (qn_layer_experts); their results are added; NULL: none */
    const qn_part *beside;       /* reads what the mixer reads, and its result is added too; NULL: none */
    const qn_part *second;       /* a feed-forward behind `ff`, that reads what the mixer read, with a norm of its own; NULL: none */
    const qn_part *around;       /* `plan` before the block, `close` behind it; NULL: none   */
    const qn_part *tail;         /* a third half, behind the other two; NULL: none           */
    uint64_t features;
    int32_t n_head, n_head_kv, head_dim, head_dim_v, n_ff;
    int32_t window;              /* positions a token sees, itself included; 0: all          */
    int32_t is_chunked;          /* ... of which it sees those with the same position / window */
    int32_t i_rope;              /* index into qn_net.rope; -1: not rotated                  */
    int32_t i_kv;                /* layer whose keys and values it attends to: itself, or one before */
    float mixed_scale;           /* of the residual stream behind the mixer's post-norm; 1: as it is */
    qn_xielu xielu;              /* with QN_F_XIELU                                          */
    float most, most_shared;     /* of the activation of experts' gates, and of their up, either way; of the shared one's; 0: no limit */
    float deviations;            /* gates below mean + so many deviations stay shut; -Inf: any gate may open */
    int32_t q_gated;             /* rows of wq are for each head its query, then its gate    */
    int64_t state_floats;        /* what it keeps of a timeline besides keys and values      */
    qn_weight wq, wk, wv, wo, w_gate, gate, up, down; /* w_gate: of attention's result        */
    qn_vector bq, bk, bv, bo, bgate, bup, bdown;
    qn_vector attn_norm, ffn_norm, attn_post_norm, ffn_post_norm, q_norm, k_norm, attn_sub_norm, ffn_sub_norm, second_norm;
    qn_vector attn_norm_b, ffn_norm_b, attn_post_norm_b, ffn_post_norm_b, q_norm_b, k_norm_b, sinks;
    qn_vector again_norm, again_norm_b; /* with QN_F_NORM_TWICE                              */
    qn_layer_experts x;
    qn_layer_latent latent;
    qn_layer_recur recur;
    qn_layer_altup altup;
    qn_layer_laurel laurel;
    qn_layer_own_rows rows;
    qn_vector out_scale;         /* [1] of the residual stream behind the layer; without one, as it is */
} qn_layer;

/** Dimensions of a head's key that do not rotate. */
static inline int32_t qn_latent_n_plain(const qn_layer *l)
{
    return l->latent.n_key - (l->head_dim - l->head_dim_v);
}

/** Keys of experts that are the same for all layers. */
typedef struct qn_net_experts {
    int32_t n_groups, n_groups_used, gate, normalised;
    float scale;
} qn_net_experts;

/** Of a model with several residual streams, and of one with a row for each token and layer. */
typedef struct qn_net_streams {
    int32_t n, i_active;
    qn_weight from_x, to_x;      /* a part for each stream but the first                     */
} qn_net_streams;
typedef struct qn_net_rows {
    int32_t width;               /* of a layer's part                                        */
    qn_weight table, proj;
    qn_vector norm;
} qn_net_rows;

/** A model's network. Everything it points to lives in one arena. */
struct qn_net {
    const qn_arch *arch;
    uint64_t features;
    int32_t n_layer, n_embd, n_vocab, n_ctx_train;
    int32_t n_draft;             /* layers behind the others that predict further tokens: nobody uses them */
    int32_t head_dim;            /* of the layers that attend: one for all; 0: none does     */
    int32_t n_positions;         /* most positions that the model can tell apart; 0: no limit */
    qn_unary act;                /* of the feed-forward                                      */
    float norm_eps, embed_scale, attn_scale, attn_softcap, logit_softcap, logit_scale, residual_scale, kqv_clamp;
    float value_scale;           /* of attention's result                                   */
    qn_temper temper;            /* of queries                                               */
    float max_alibi_bias;        /* of attention's linear position biases (src/ops/alibi.h); 0: none */
    qn_rope rope[QN_MAX_ROPES];
    int32_t n_ropes;
    qn_net_experts experts;
    qn_net_streams streams;
    qn_net_rows layer_rows;
    qn_layer *layer;             /* [n_layer]                                                */
    qn_weight embed, positions, head; /* head is absent when it is tied to embed             */
    qn_vector embed_norm, embed_norm_b, out_norm, out_norm_b, head_b, rope_factors;
    qn_vector token_type, other_types; /* [n_embd] and the rest                            */
    int32_t n_types;
    qn_vector rope_factors_long; /* in place of rope_factors where the context is longer than the original one */
    int32_t is_causal, pooling, classifier_pooling; /* as the file has them                  */
    int32_t n_labels, n_cls;     /* scores of the classifier, rows of `cls`; 0: there is none */
    qn_weight cls, cls_out;      /* the classifier (src/run/classify.c)                          */
    qn_vector cls_b, cls_norm, cls_out_b;
    int32_t n_dense;             /* rows of dense_2                                          */
    qn_weight dense_2, dense_3;  /* a text's vector goes through them, where they are        */
    uint8_t *used;               /* [n_tensors of the file] 1 where something bound it       */
};

/* ---- tables that architectures and parts consist of ---- */

#define QN_ALWAYS UINT64_MAX

typedef enum qn_key_kind {
    QN_KEY_LAYER,                /* int32_t in qn_layer; the file has one for all layers or an array */
    QN_KEY_NET,                  /* int32_t in qn_net                                        */
    QN_KEY_FLOAT,                /* float in qn_net                                          */
    QN_KEY_HOOK,                 /* a hook reads it; listed so that it is known              */
} qn_key_kind;

/** A key "<architecture>.<name>". What is optional keeps the value that is there already. */
typedef struct qn_key_row {
    const char *name;
    qn_key_kind kind;
    size_t offset;
    bool required;
    int64_t lo, hi;              /* of integers                                              */
} qn_key_row;

/** A side of a tensor. @param l  NULL outside the layers. @return QN_NO_TENSOR: this layer has none */
typedef int64_t qn_dim(const qn_net *net, const qn_layer *l);
qn_dim qn_dim_embd, qn_dim_vocab, qn_dim_ff, qn_dim_q, qn_dim_k, qn_dim_v, qn_dim_o, qn_dim_q_norm, qn_dim_k_norm, qn_dim_half_rot,
    qn_dim_ctx, qn_dim_taps, qn_dim_inner, qn_dim_state, qn_dim_dt, qn_dim_one;
enum { QN_NO_TENSOR = -1 };

/** A tensor. One whose rows are several matrices one after another (fused q, k, v) has an offset and rows for each. */
typedef struct qn_tensor_row {
    const char *name;            /* "%d" is the layer                                        */
    bool is_vector;
    size_t at[QN_MAX_SPLITS];    /* of a qn_weight or qn_vector in qn_layer, or in qn_net without a layer */
    int n_at;
    qn_dim *cols;                /* of a vector: NULL                                        */
    qn_dim *rows[QN_MAX_SPLITS]; /* of each                                                  */
    uint64_t only, unless;       /* there only with one of these features, 0: always; and with none of those */
    uint64_t required;           /* must be there with one of these features, QN_ALWAYS: in any case; else the file tells */
    qn_dim *slices;              /* of a matrix or vector for each expert or head: how many; NULL: one */
    bool in_one;                 /* slices are rows of one matrix, one slice behind the other */
    unsigned turned;             /* bit i: the i-th matrix is bound with its rows as columns */
    bool across;                 /* of a vector with slices: it is kept as `rows` runs of one element a slice */
    bool in_file;                /* a table that stays in the file                           */
    uint64_t unread;             /* with one of these features the file may have it, and nothing needs it */
    bool on_use;                 /* a slice is packed when it is first used (src/ops/pairs.h) */
} qn_tensor_row;

/** The beginning of a row: where one matrix or vector of a layer or of the net is bound. */
#define QN_LAYER_W(field) .at = { offsetof(qn_layer, field) }, .n_at = 1
#define QN_LAYER_V(field) .is_vector = true, .at = { offsetof(qn_layer, field) }, .n_at = 1
#define QN_NET_W(field) .at = { offsetof(qn_net, field) }, .n_at = 1
#define QN_NET_V(field) .is_vector = true, .at = { offsetof(qn_net, field) }, .n_at = 1

/**
 * A kind of half block. Its keys are read once when any layer has it, then `check` sees each of those layers.
 * `plan` appends stages from the rows `in` (residual stream, normed where the block has a norm there) to whatever registers hold its result before the last
 * step; `close` appends that last step. A parallel block plans both halves before it closes either.
 */
struct qn_part {
    const char *name;            /* for people                                               */
    const qn_key_row *keys;
    int32_t n_keys;
    const qn_tensor_row *tensors; /* of a layer                                              */
    int32_t n_tensors;
    bool attends;                /* it has keys and values in the cache                      */
    /** After the keys: fill in what the file left out, refuse what cannot be. May be NULL. */
    qn_status (*check)(const qn_net *net, qn_layer *l, int32_t i_layer, qn_err *err);
    /** A mixer calls qn_plan_only_outputs in the last layer, once everything that later tokens need is stored. */
    void (*plan)(const qn_net *net, const qn_layer *l, int32_t i_layer, qn_plan *p, const qn_input *in);
    void (*close)(const qn_net *net, const qn_layer *l, qn_plan *p, const qn_close_to *to);
};
extern const qn_part qn_mix_attention, qn_mix_latent, qn_mix_latent_whole, qn_mix_selective, qn_mix_ssm, qn_mix_delta, qn_mix_shortconv, qn_mix_laurel,
    qn_mix_router, qn_ff_dense, qn_ff_experts, qn_ff_layer_rows, qn_around_altup;

/** How an architecture's experts differ from those of others, and which keys it heeds. */
enum { QN_HEED_GATE = 1, QN_HEED_NORM = 2, QN_HEED_SCALE = 4 };
enum { QN_SHARED_BY_COUNT = 1, QN_SHARED_AS_DENSE = 2, QN_SHARED_EACH = 4, QN_SHARED_ONE = 8 };
typedef struct qn_expert_rules {
    qn_gate_kind gate;           /* where the file's expert_gating_func is absent or not heeded */
    bool normalised;             /* where expert_weights_norm is not heeded                  */
    uint32_t heeds;
    bool ff_as_dense;            /* an expert has feed_forward_length rows whatever expert_feed_forward_length is */
    bool weighs_input;           /* weights are of the experts' input, not of their results  */
    bool divides_ff;             /* without expert_feed_forward_length, an expert is a share of feed_forward_length, else all of it */
    uint32_t shared;             /* without expert_shared_feed_forward_length: of expert_shared_count experts' size, as the dense one, as one of
                                  * the others, or 0: none; EACH: with it, so many times that */
    float scale_with_shared;     /* of the sum of all experts, where one is shared; 0: 1     */
} qn_expert_rules;
/** For hooks, and one by itself: the layers behind the leading dense ones have experts; none where the file has no experts and the architecture is a
 *  dense one by its `ff`. */
qn_status qn_layers_experts(qn_net *net, const qn_file *file, qn_err *err);
/** For hooks: gate and up of this layer's experts are one tensor or two, by the tensors of the file. */
void qn_layer_experts_look(qn_layer *l, const qn_file *file, int32_t i_layer);
/** The same, and a layer is dense where the file has a dense feed-forward in it. */
qn_status qn_layers_experts_by_tensor(qn_net *net, const qn_file *file, qn_err *err);
qn_status qn_layers_latent(qn_net *net, const qn_file *file, qn_err *err);
/** For `adjust`: angles of what rotates alone, scores over the square root of a head's key. */
qn_status qn_adjust_latent(qn_net *net, const qn_file *file, qn_err *err);

/** For hooks: layers without KV heads have `recurrent` as their mixer. */
qn_status qn_layers_without_kv(qn_net *net, const qn_file *file, const qn_part *recurrent, qn_err *err);
/** For hooks: a layer with feed-forward rows is `ff` alone, one with KV heads attention alone, the others are `recurrent` alone. */
qn_status qn_layers_of_halves(qn_net *net, const qn_file *file, const qn_part *recurrent, const qn_part *ff, qn_err *err);
/** For hooks: all but every n-th layer have `recurrent` as their mixer; the file may list them. */
qn_status qn_layers_interleaved(qn_net *net, const qn_file *file, const qn_part *recurrent, qn_err *err);

/** For hooks: beside every mixer a learned residual of this rank, unless the file's tensors have another. */
qn_status qn_layers_laurel(qn_net *net, const qn_file *file, int32_t rank, qn_err *err);
/** For hooks, after the windows: all layers but the first n_own, or as many as the file says, attend to the keys of the last of these with their window. */
qn_status qn_net_share_kv(qn_net *net, const qn_file *file, int32_t n_own, qn_err *err);

struct qn_arch {
    const char *name;            /* general.architecture                                     */
    const char *covers;          /* public models, for people                                */
    uint64_t features;
    qn_unary act;                /* of the feed-forward, unless `adjust` sets another        */
    const qn_part *mixer, *ff;   /* of every layer, unless `layers` sets another; NULL: none */
    const qn_part *others[QN_MAX_OTHERS]; /* what `layers` may set                           */
    const char *cache_type;      /* how keys and values are kept when nobody says; NULL: F16 */
    const qn_expert_rules *experts; /* where layers have experts                             */
    const qn_key_row *keys;      /* beyond the shared ones                                   */
    int32_t n_keys;
    const qn_tensor_row *tensors, *layer_tensors; /* beyond those of the net and of the parts */
    int32_t n_tensors, n_layer_tensors;
    bool cls_gelu;               /* behind the classifier's first matrix stands GELU; else tanh */
    bool cls_softmax;            /* its scores are probabilities                             */
    /** Before the parts' keys: set parts and features of single layers. May be NULL. */
    qn_status (*layers)(qn_net *net, const qn_file *file, qn_err *err);
    /** After all keys: rules of its own. May be NULL. */
    qn_status (*adjust)(qn_net *net, const qn_file *file, qn_err *err);
};

/** Do all positions of a text see each other? */
static inline bool qn_net_is_encoder(const qn_net *net)
{
    return net->features & QN_F_ENCODER;
}

const qn_arch *qn_arch_find(qn_str name);
int32_t qn_arch_count(void);
/** @param i 0 .. count - 1 */
const qn_arch *qn_arch_at(int32_t i);

/* ---- reading a file ---- */

/** Read hyperparameters and bind every tensor; nothing is packed yet. Fails for a file whose tensors do not fit, or are not all used. */
qn_status qn_net_open(qn_net *net, const qn_file *file, int32_t n_vocab, qn_err *err);
void qn_net_close(qn_net *net);

/** Hyperparameters alone (models/hparams.c) and tensors alone (models/tensors.c). */
qn_status qn_net_read_hparams(qn_net *net, const qn_file *file, qn_err *err);
qn_status qn_net_bind_tensors(qn_net *net, const qn_file *file, qn_err *err);

/** Read the keys of a table (models/keys_read.c). */
qn_status qn_net_read_keys(qn_net *net, const qn_file *file, const qn_key_row *rows, int32_t n, qn_err *err);
/** For hooks: a number, that keeps its value when the key is absent. */
qn_status qn_net_read_f32(const qn_net *net, const qn_file *file, const char *name, float *out, qn_err *err);
qn_status qn_net_read_i32(const qn_net *net, const qn_file *file, const char *name, int64_t lo, int64_t hi, int32_t *out, qn_err *err);
/** For hooks: numbers or flags, one for each of n; one number in the file is that of all. @return QN_ERR_NOT_FOUND without a sentence when absent */
qn_status qn_net_read_i32s(const qn_net *net, const qn_file *file, const char *name, int64_t lo, int64_t hi, int32_t *out, int32_t n, qn_err *err);
/** For hooks: numbers from lo to below hi, one for each layer; one in the file is that of all.
 *  @param out  of layer 0, others are a qn_layer apart; kept when absent */
qn_status qn_net_read_layer_f32s(const qn_net *net, const qn_file *file, const char *name, double lo, double hi, float *out, qn_err *err);
/** rope[0], once the layers are known (models/rope_keys.c). */
qn_status qn_net_read_rope(qn_net *net, const qn_file *file, qn_err *err);
/** For hooks: keys that say which layers see a sliding window alone, every `period`-th sees all; the file may have a pattern of its own. */
qn_status qn_net_read_windows(qn_net *net, const qn_file *file, int32_t period, bool dense_first, qn_err *err);
/** For hooks, after that: layers with a window get angles of their own, rope[1]: those of rope[0] with another base, which the file may set. */
qn_status qn_net_windowed_rope(qn_net *net, const qn_file *file, float base, qn_err *err);
/** For `adjust`, after the windows: layers with a window have heads of their own size where the file says so, and so many dimensions of them turn;
 *  scores must not depend on the size of a head. */
qn_status qn_net_windowed_heads(qn_net *net, const qn_file *file, qn_err *err);
/** For `adjust`, and one by itself: three layers with a sliding window, then one that sees everything and is not rotated. */
qn_status qn_adjust_every_fourth_sees_all(qn_net *net, const qn_file *file, qn_err *err);
/** The same, and what else scales or stretches rope[0] leaves rope[1] alone. */
qn_status qn_net_local_rope(qn_net *net, const qn_file *file, float base, qn_err *err);
/** Likewise, of OLMo 3: where the file has a sliding window, three of four layers have it, with positions that are not scaled. */
qn_status qn_adjust_windows_unscaled(qn_net *net, const qn_file *file, qn_err *err);
/** For hooks: rope.dimension_sections into rope[0]. */
qn_status qn_net_read_sections(qn_net *net, const qn_file *file, qn_err *err);
/** Does the file have this tensor in this layer? */
bool qn_net_has_tensor(const qn_file *file, const char *name, int32_t i_layer);
/** Rows of a matrix of this layer; 0: the file has none. */
int64_t qn_net_tensor_rows(const qn_file *file, const char *name, int32_t i_layer);

/** A tensor that a model of these hyperparameters has. */
typedef struct qn_tensor_due {
    char name[64];
    bool is_vector, is_optional;
    bool on_use, across, in_file, unread, in_one;
    unsigned turned;
    int64_t cols, rows, slices;  /* rows are 1 for a vector, slices for what is there once   */
    int n_parts;                 /* its rows (of a vector: elements) are so many things      */
    int64_t part_rows[QN_MAX_SPLITS];
    qn_weight *weight[QN_MAX_SPLITS]; /* where they are bound: one of the two                */
    qn_vector *vector[QN_MAX_SPLITS];
} qn_tensor_due;
/** Walk them in order of use; the hyperparameters must have been read. Stops at the first status that is not QN_OK and returns it. */
qn_status qn_net_each_tensor(const qn_net *net, qn_status (*fn)(void *user, const qn_tensor_due *t), void *user);

/** Every key that an architecture and its parts read. Stops at the first status that is not QN_OK and returns it. */
qn_status qn_arch_each_key(const qn_arch *arch, qn_status (*fn)(void *user, const qn_key_row *k), void *user);

/** Call `fn` for every weight and vector that is there, in order of use. */
typedef struct qn_net_visitor {
    qn_status (*weight)(void *user, qn_weight *w);
    qn_status (*vector)(void *user, qn_vector *v);
    void *user;
} qn_net_visitor;
qn_status qn_net_visit(qn_net *net, const qn_net_visitor *v);

/* ---- the forward pass ---- */

/** Build the forward pass. The vectors must have been loaded; weights may still be unpacked (the plan points to their descriptors).
 *  @param n_ctx  positions of a timeline: decides between long and short factors of the angles */
qn_status qn_net_plan(const qn_net *net, int32_t n_ctx, qn_plan *plan, qn_err *err);
/** The architecture's kind of norm with these weights; NONE without weights, unless its norms have none (QN_F_NORM_PLAIN). */
qn_norm qn_net_norm(const qn_net *net, const qn_vector *w, const qn_vector *b);

/** Stages before the first layer and behind the last of models with several streams, or rows of layers (models/around_altup.c, ff_layer_rows.c), and
 *  behind a layer: what its tail has left in T goes to all streams but the first. */
void qn_altup_open(const qn_net *net, qn_plan *p);
void qn_altup_close(const qn_net *net, qn_plan *p);
void qn_altup_spread(const qn_net *net, const qn_layer *l, qn_plan *p);
void qn_layer_rows_open(const qn_net *net, qn_plan *p);

/** The output head: its own matrix, or the embedding table that it is tied to. */
static inline const qn_weight *qn_net_head(const qn_net *net)
{
    return qn_weight_present(&net->head) ? &net->head : &net->embed;
}

#endif

/**
 * A model: hyperparameters, tensors, and the forward pass as a plan of stages.
 *
 * An architecture is one file, models/arch_<name>.c, with one `qn_arch`: what its blocks are made of (a set of features that the shared
 * tensor table and block builder understand), the defaults of its hyperparameters, and, where its rules need code, a hook.
 */
#ifndef QN_MODEL_H
#define QN_MODEL_H

#include "src/ops/plan.h"

enum { QN_MAX_LAYERS = 1024, QN_MAX_HEAD_DIM = 512 };

/** What a block is made of. */
enum {
    QN_F_QKV_BIAS = 1u << 0,     /* q, k and v have biases                                   */
    QN_F_BIAS_OPTIONAL = 1u << 1, /* every matrix may have a bias; the file tells            */
    QN_F_QK_NORM = 1u << 2,      /* RMS norm over each head of q and k                       */
    QN_F_POST_NORM = 1u << 3,    /* norms after attention and feed-forward, before the residual */
    QN_F_ROPE_NEOX = 1u << 4,    /* rotated pairs are half a head apart                      */
    QN_F_GELU = 1u << 5,         /* gate activation GELU (tanh form); else SiLU              */
    QN_F_EMBED_SQRT = 1u << 6,   /* embeddings times sqrt(n_embd)                            */
};

typedef struct qn_layer {
    int32_t n_head, n_head_kv, head_dim, head_dim_v, n_ff;
    int32_t window;              /* positions a token sees, itself included; 0: all          */
    int32_t i_rope;              /* index into qn_net.rope                                   */
    int64_t state_floats;        /* what it keeps of a timeline besides keys and values      */
    qn_weight wq, wk, wv, wo, gate, up, down;
    qn_vector bq, bk, bv, bo, bgate, bup, bdown;
    qn_vector attn_norm, ffn_norm, attn_post_norm, ffn_post_norm, q_norm, k_norm;
} qn_layer;

typedef struct qn_arch qn_arch;

/** A model's network. Everything it points to lives in one arena. */
typedef struct qn_net {
    const qn_arch *arch;
    int32_t n_layer, n_embd, n_vocab, n_ctx_train;
    float norm_eps, embed_scale, attn_scale, attn_softcap, logit_softcap, logit_scale;
    qn_rope rope[QN_MAX_ROPES];
    int32_t n_ropes;
    qn_layer *layer;             /* [n_layer]                                                */
    qn_weight embed, head;       /* head is absent when it is tied to embed                  */
    qn_vector out_norm, rope_factors;
    uint8_t *used;               /* [n_tensors of the file] 1 where something bound it       */
} qn_net;

struct qn_arch {
    const char *name;            /* general.architecture                                     */
    const char *covers;          /* public models, for people                                */
    uint32_t features;
    /** After the shared keys are read: rules of its own. May be NULL. */
    qn_status (*adjust)(qn_net *net, const qn_file *file, qn_err *err);
};

const qn_arch *qn_arch_find(qn_str name);
int32_t qn_arch_count(void);
/** @param i 0 .. count - 1 */
const qn_arch *qn_arch_at(int32_t i);

/** Read hyperparameters and bind every tensor; nothing is packed yet. Fails for a file whose tensors do not fit, or are not all used. */
qn_status qn_net_open(qn_net *net, const qn_file *file, int32_t n_vocab, qn_err *err);
void qn_net_close(qn_net *net);

/** Hyperparameters alone (models/hparams.c) and tensors alone (models/tensors.c). */
qn_status qn_net_read_hparams(qn_net *net, const qn_file *file, qn_err *err);
qn_status qn_net_bind_tensors(qn_net *net, const qn_file *file, qn_err *err);

/** A tensor that a model of these hyperparameters has. */
typedef struct qn_tensor_due {
    char name[64];
    bool is_vector, is_optional;
    int64_t cols, rows;          /* rows is 1 for a vector                                   */
    qn_weight *weight;           /* where it is bound: one of the two                        */
    qn_vector *vector;
} qn_tensor_due;
/** Walk them in order of use; the hyperparameters must have been read. Stops at the first status that is not QN_OK and returns it. */
qn_status qn_net_each_tensor(const qn_net *net, qn_status (*fn)(void *user, const qn_tensor_due *t), void *user);

/** Call `fn` for every weight and vector that is there, in order of use. */
typedef struct qn_net_visitor {
    qn_status (*weight)(void *user, qn_weight *w);
    qn_status (*vector)(void *user, qn_vector *v);
    void *user;
} qn_net_visitor;
qn_status qn_net_visit(qn_net *net, const qn_net_visitor *v);

/** Build the forward pass. The vectors must have been loaded; weights may still be unpacked (the plan points to their descriptors). */
qn_status qn_net_plan(const qn_net *net, qn_plan *plan, qn_err *err);

/** The output head: its own matrix, or the embedding table that it is tied to. */
static inline const qn_weight *qn_net_head(const qn_net *net)
{
    return qn_weight_present(&net->head) ? &net->head : &net->embed;
}

#endif

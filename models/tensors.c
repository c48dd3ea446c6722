#include "models/model.h"

#include "src/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sizes that a tensor's sides are made of. */
typedef enum dim { D_NONE = 0, D_EMBD, D_VOCAB, D_FF, D_Q, D_K, D_V, D_O, D_HEAD, D_HALF_ROT } dim;

typedef struct tensor_row {
    const char *name;            /* "%d" is the layer                                        */
    bool is_vector;
    size_t offset;               /* of a qn_weight or qn_vector in qn_layer or qn_net        */
    dim cols, rows;
    uint32_t only;               /* present with one of these features alone; 0: always      */
    uint32_t optional;           /* may be absent with one of these features; ~0: always     */
} tensor_row;

#define W(field) false, offsetof(qn_layer, field)
#define V(field) true, offsetof(qn_layer, field)
#define ANY_BIAS (QN_F_QKV_BIAS | QN_F_BIAS_OPTIONAL)
static const tensor_row layer_rows[] = {
    { "blk.%d.attn_norm.weight", V(attn_norm), D_EMBD, D_NONE, 0, 0 },
    { "blk.%d.attn_q.weight", W(wq), D_EMBD, D_Q, 0, 0 },
    { "blk.%d.attn_k.weight", W(wk), D_EMBD, D_K, 0, 0 },
    { "blk.%d.attn_v.weight", W(wv), D_EMBD, D_V, 0, 0 },
    { "blk.%d.attn_q.bias", V(bq), D_Q, D_NONE, ANY_BIAS, QN_F_BIAS_OPTIONAL },
    { "blk.%d.attn_k.bias", V(bk), D_K, D_NONE, ANY_BIAS, QN_F_BIAS_OPTIONAL },
    { "blk.%d.attn_v.bias", V(bv), D_V, D_NONE, ANY_BIAS, QN_F_BIAS_OPTIONAL },
    { "blk.%d.attn_q_norm.weight", V(q_norm), D_HEAD, D_NONE, QN_F_QK_NORM, 0 },
    { "blk.%d.attn_k_norm.weight", V(k_norm), D_HEAD, D_NONE, QN_F_QK_NORM, 0 },
    { "blk.%d.attn_output.weight", W(wo), D_O, D_EMBD, 0, 0 },
    { "blk.%d.attn_output.bias", V(bo), D_EMBD, D_NONE, QN_F_BIAS_OPTIONAL, QN_F_BIAS_OPTIONAL },
    { "blk.%d.post_attention_norm.weight", V(attn_post_norm), D_EMBD, D_NONE, QN_F_POST_NORM, 0 },
    { "blk.%d.ffn_norm.weight", V(ffn_norm), D_EMBD, D_NONE, 0, 0 },
    { "blk.%d.ffn_gate.weight", W(gate), D_EMBD, D_FF, 0, 0 },
    { "blk.%d.ffn_up.weight", W(up), D_EMBD, D_FF, 0, 0 },
    { "blk.%d.ffn_down.weight", W(down), D_FF, D_EMBD, 0, 0 },
    { "blk.%d.ffn_gate.bias", V(bgate), D_FF, D_NONE, QN_F_BIAS_OPTIONAL, QN_F_BIAS_OPTIONAL },
    { "blk.%d.ffn_up.bias", V(bup), D_FF, D_NONE, QN_F_BIAS_OPTIONAL, QN_F_BIAS_OPTIONAL },
    { "blk.%d.ffn_down.bias", V(bdown), D_EMBD, D_NONE, QN_F_BIAS_OPTIONAL, QN_F_BIAS_OPTIONAL },
    { "blk.%d.post_ffw_norm.weight", V(ffn_post_norm), D_EMBD, D_NONE, QN_F_POST_NORM, 0 },
};
#undef W
#undef V
#define W(field) false, offsetof(qn_net, field)
#define V(field) true, offsetof(qn_net, field)
static const tensor_row net_rows[] = {
    { "token_embd.weight", W(embed), D_EMBD, D_VOCAB, 0, 0 },
    { "rope_freqs.weight", V(rope_factors), D_HALF_ROT, D_NONE, 0, ~0u },
    { "output_norm.weight", V(out_norm), D_EMBD, D_NONE, 0, 0 },
    { "output.weight", W(head), D_EMBD, D_VOCAB, 0, ~0u },
};
enum { N_LAYER_ROWS = sizeof layer_rows / sizeof *layer_rows, N_NET_ROWS = sizeof net_rows / sizeof *net_rows };

static int64_t size_of(dim d, const qn_net *net, const qn_layer *l)
{
    switch (d) {
    case D_NONE: return 1;
    case D_EMBD: return net->n_embd;
    case D_VOCAB: return net->n_vocab;
    case D_HALF_ROT: return net->rope[0].n_rot / 2;
    case D_FF: return l->n_ff;
    case D_Q: return (int64_t)l->n_head * l->head_dim;
    case D_K: return (int64_t)l->n_head_kv * l->head_dim;
    case D_V: return (int64_t)l->n_head_kv * l->head_dim_v;
    case D_O: return (int64_t)l->n_head * l->head_dim_v;
    case D_HEAD: return l->head_dim;
    }
    return 0;
}

/* A row of the tables for this model: false where the architecture has no such tensor. */
static bool due(const qn_net *net, const tensor_row *r, int32_t i_layer, qn_tensor_due *out)
{
    const uint32_t features = net->arch->features;
    if (r->only && !(r->only & features)) return false;
    qn_layer *l = i_layer >= 0 ? &net->layer[i_layer] : NULL;
    snprintf(out->name, sizeof out->name, r->name, i_layer);
    out->is_vector = r->is_vector;
    out->is_optional = r->optional == ~0u || (r->optional & features);
    out->cols = size_of(r->cols, net, l);
    out->rows = size_of(r->rows, net, l);
    char *base = l ? (char *)l : (char *)(uintptr_t)net;
    out->weight = r->is_vector ? NULL : (qn_weight *)(void *)(base + r->offset);
    out->vector = r->is_vector ? (qn_vector *)(void *)(base + r->offset) : NULL;
    return true;
}

qn_status qn_net_each_tensor(const qn_net *net, qn_status (*fn)(void *user, const qn_tensor_due *t), void *user)
{
    qn_tensor_due t;
    for (int i = 0; i < N_NET_ROWS; i++)
        if (due(net, &net_rows[i], -1, &t)) QN_TRY(fn(user, &t));
    for (int32_t l = 0; l < net->n_layer; l++)
        for (int i = 0; i < N_LAYER_ROWS; i++)
            if (due(net, &layer_rows[i], l, &t)) QN_TRY(fn(user, &t));
    return QN_OK;
}

typedef struct binder {
    const qn_net *net;
    const qn_file *file;
    qn_err *err;
} binder;

static qn_status bind(void *user, const qn_tensor_due *due_tensor)
{
    const binder *b = user;
    const qn_tensor_due *d = due_tensor;
    qn_tensor_info t;
    const int64_t i = qn_file_tensor_find(b->file, d->name);
    if (i < 0 && d->is_optional) return QN_OK;
    if (i < 0) return qn_fail(b->err, QN_ERR_FORMAT, "tensor %s is missing (architecture %s, %d layers)", d->name, b->net->arch->name, b->net->n_layer);
    qn_file_tensor_at(b->file, i, &t);
    if (t.dims[0] != d->cols || t.dims[1] != d->rows || t.dims[2] != 1 || t.dims[3] != 1)
        return qn_fail(b->err, QN_ERR_FORMAT, "tensor %s has the shape [%lld, %lld, %lld, %lld]; this model's is [%lld, %lld]", d->name,
                       (long long)t.dims[0], (long long)t.dims[1], (long long)t.dims[2], (long long)t.dims[3], (long long)d->cols,
                       (long long)d->rows);
    b->net->used[i] = 1;
    return d->is_vector ? qn_vector_bind(d->vector, b->file, i, b->err) : qn_weight_bind(d->weight, b->file, i, b->err);
}

/* Tensors that old converters wrote and that hold nothing a model needs. */
static bool is_leftover(qn_str name)
{
    static const char *const tails[] = { ".rotary_emb.inv_freq", ".attn_rot_embd" };
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        const size_t n = strlen(tails[i]);
        if (name.len >= n && !memcmp(name.ptr + name.len - n, tails[i], n)) return true;
    }
    return false;
}

/* A tensor that nothing reads would change what the model computes: refused, not ignored. */
static qn_status all_used(const qn_net *net, const qn_file *file, qn_err *err)
{
    for (int64_t i = 0; i < qn_file_n_tensors(file); i++) {
        qn_tensor_info t;
        if (net->used[i] || !qn_file_tensor_at(file, i, &t) || is_leftover(t.name)) continue;
        return qn_fail(err, QN_ERR_UNSUPPORTED, "the file has a tensor %.*s, for which the architecture %s has no use", QN_STR_ARG(t.name),
                       net->arch->name);
    }
    return QN_OK;
}

qn_status qn_net_bind_tensors(qn_net *net, const qn_file *file, qn_err *err)
{
    net->used = qn_new((size_t)qn_file_n_tensors(file), 1);
    if (!net->used) return qn_fail(err, QN_ERR_NOMEM, "no memory for the tensor list");
    QN_TRY(qn_net_each_tensor(net, bind, &(binder){ net, file, err }));
    return all_used(net, file, err);
}

static qn_status visit(void *user, const qn_tensor_due *t)
{
    const qn_net_visitor *v = user;
    if (t->is_vector) return t->vector->n ? v->vector(v->user, t->vector) : QN_OK;
    return qn_weight_present(t->weight) ? v->weight(v->user, t->weight) : QN_OK;
}

qn_status qn_net_visit(qn_net *net, const qn_net_visitor *v)
{
    return qn_net_each_tensor(net, visit, (void *)(uintptr_t)v);
}

qn_status qn_net_open(qn_net *net, const qn_file *file, int32_t n_vocab, qn_err *err)
{
    qn_value v;
    qn_str name;
    *net = (qn_net){ .n_vocab = n_vocab };
    if (!qn_file_key(file, "general.architecture", &v) || qn_value_as_str(&v, &name) != QN_OK)
        return qn_fail(err, QN_ERR_FORMAT, "the file has no general.architecture: it holds no model");
    net->arch = qn_arch_find(name);
    if (!net->arch) {
        char known[256] = "";
        for (int32_t i = 0; i < qn_arch_count(); i++) {
            const size_t n = strlen(known);
            snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", qn_arch_at(i)->name);
        }
        return qn_fail(err, QN_ERR_UNSUPPORTED, "architecture \"%.*s\" is not supported; quern runs %s", QN_STR_ARG(name), known);
    }
    QN_TRY(qn_net_read_hparams(net, file, err));
    return qn_net_bind_tensors(net, file, err);
}

void qn_net_close(qn_net *net)
{
    free(net->layer);
    free(net->used);
    *net = (qn_net){ 0 };
}

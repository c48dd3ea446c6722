#include "models/model.h"

#include "src/base/mem.h"
#include "src/ops/weight_encode.h"

#include <stdio.h>
#include <string.h>

/* Sides of tensors. */
int64_t qn_dim_embd(const qn_net *net, const qn_layer *l) { (void)l; return net->n_embd; }
int64_t qn_dim_vocab(const qn_net *net, const qn_layer *l) { (void)l; return net->n_vocab; }
int64_t qn_dim_ctx(const qn_net *net, const qn_layer *l) { (void)l; return net->n_ctx_train; }
int64_t qn_dim_half_rot(const qn_net *net, const qn_layer *l) { (void)l; return net->rope[0].n_rot / 2; }
int64_t qn_dim_taps(const qn_net *net, const qn_layer *l) { (void)net; return l->recur.n_taps; }
int64_t qn_dim_inner(const qn_net *net, const qn_layer *l) { (void)net; return l->recur.d_inner; }
int64_t qn_dim_state(const qn_net *net, const qn_layer *l) { (void)net; return l->recur.d_state; }
int64_t qn_dim_dt(const qn_net *net, const qn_layer *l) { (void)net; return l->recur.n_dt; }
int64_t qn_dim_ff(const qn_net *net, const qn_layer *l) { (void)net; return l->n_ff; }
int64_t qn_dim_q(const qn_net *net, const qn_layer *l) { (void)net; return (int64_t)l->n_head * l->head_dim * (l->q_gated ? 2 : 1); }
int64_t qn_dim_k(const qn_net *net, const qn_layer *l) { (void)net; return (int64_t)l->n_head_kv * l->head_dim; }
int64_t qn_dim_v(const qn_net *net, const qn_layer *l) { (void)net; return (int64_t)l->n_head_kv * l->head_dim_v; }
int64_t qn_dim_o(const qn_net *net, const qn_layer *l) { (void)net; return (int64_t)l->n_head * l->head_dim_v; }

static int64_t qk_norm_size(const qn_layer *l, int32_t n_head)
{
    return l->features & (QN_F_QK_NORM_HEADS | QN_F_QK_NORM_WIDE) ? (int64_t)n_head * l->head_dim : l->head_dim;
}

int64_t qn_dim_q_norm(const qn_net *net, const qn_layer *l) { (void)net; return qk_norm_size(l, l->n_head); }
int64_t qn_dim_k_norm(const qn_net *net, const qn_layer *l) { (void)net; return qk_norm_size(l, l->n_head_kv); }

static int64_t other_types(const qn_net *net, const qn_layer *l) { (void)l; return (int64_t)(net->n_types - 1) * net->n_embd; }

static int64_t other_streams(const qn_net *net, const qn_layer *l) { (void)l; return net->streams.n - 1; }
static int64_t layer_row(const qn_net *net, const qn_layer *l) { (void)l; return net->layer_rows.width; }
static int64_t layer_rows(const qn_net *net, const qn_layer *l) { (void)l; return (int64_t)net->n_layer * net->layer_rows.width; }

#define NORM_BIAS (QN_F_NORM_BIAS | QN_F_NORM_BIAS_OPTIONAL)

static int64_t labels(const qn_net *net, const qn_layer *l) { (void)l; return net->n_labels; }
static int64_t cls_rows(const qn_net *net, const qn_layer *l) { (void)l; return net->n_cls; }

static const qn_tensor_row net_rows[] = {
    { "token_embd.weight", QN_NET_W(embed), .cols = qn_dim_embd, .rows = { qn_dim_vocab }, .required = QN_ALWAYS },
    { "position_embd.weight", QN_NET_W(positions), .cols = qn_dim_embd, .rows = { qn_dim_ctx }, .only = QN_F_POSITIONS, .required = QN_ALWAYS },
    { "token_types.weight", .is_vector = true, .at = { offsetof(qn_net, token_type), offsetof(qn_net, other_types) }, .n_at = 2,
      .rows = { qn_dim_embd, other_types }, .only = QN_F_TOKEN_TYPES },
    { "per_layer_token_embd.weight", QN_NET_W(layer_rows.table), .cols = layer_rows, .rows = { qn_dim_vocab }, .only = QN_F_LAYER_ROWS,
      .required = QN_ALWAYS, .in_file = true },
    { "per_layer_model_proj.weight", QN_NET_W(layer_rows.proj), .cols = qn_dim_embd, .rows = { layer_rows }, .only = QN_F_LAYER_ROWS,
      .required = QN_ALWAYS },
    { "per_layer_proj_norm.weight", QN_NET_V(layer_rows.norm), .rows = { layer_row }, .only = QN_F_LAYER_ROWS, .required = QN_ALWAYS },
    { "altup_proj.weight", QN_NET_W(streams.from_x), .cols = qn_dim_embd, .rows = { qn_dim_embd }, .only = QN_F_STREAMS, .required = QN_ALWAYS,
      .slices = other_streams },
    { "altup_unembd_proj.weight", QN_NET_W(streams.to_x), .cols = qn_dim_embd, .rows = { qn_dim_embd }, .only = QN_F_STREAMS, .required = QN_ALWAYS,
      .slices = other_streams },
    { "token_embd_norm.weight", QN_NET_V(embed_norm), .rows = { qn_dim_embd }, .only = QN_F_EMBED_NORM, .required = QN_ALWAYS },
    { "token_embd_norm.bias", QN_NET_V(embed_norm_b), .rows = { qn_dim_embd }, .only = QN_F_EMBED_NORM, .required = QN_F_NORM_BIAS },
    { "rope_freqs.weight", QN_NET_V(rope_factors), .rows = { qn_dim_half_rot }, .unless = QN_F_NO_ROPE },
    { "output_norm.weight", QN_NET_V(out_norm), .rows = { qn_dim_embd }, .unless = QN_F_NORM_PLAIN | QN_F_NORM_AFTER, .required = QN_ALWAYS },
    { "output_norm.bias", QN_NET_V(out_norm_b), .rows = { qn_dim_embd }, .only = NORM_BIAS, .unless = QN_F_NORM_AFTER, .required = QN_F_NORM_BIAS },
    { "output.weight", QN_NET_W(head), .cols = qn_dim_embd, .rows = { qn_dim_vocab }, .unless = QN_F_TIED },
    { "output.bias", QN_NET_V(head_b), .rows = { qn_dim_vocab }, .required = QN_F_HEAD_BIAS },
    { "cls.weight", QN_NET_W(cls), .cols = qn_dim_embd, .rows = { cls_rows } },
    { "cls.bias", QN_NET_V(cls_b), .rows = { cls_rows } },
    { "cls.norm.weight", QN_NET_V(cls_norm), .rows = { qn_dim_embd } },
    { "cls.output.weight", QN_NET_W(cls_out), .cols = qn_dim_embd, .rows = { labels } },
    { "cls.output.bias", QN_NET_V(cls_out_b), .rows = { labels } },
};

#define NO_PRE (QN_F_NORM_PLAIN | QN_F_NO_PRE_NORM)
#define NO_PRE_MIXER (NO_PRE | QN_F_NO_MIXER_NORM)
static const qn_tensor_row pre_mixer_rows[] = {
    { "blk.%d.attn_norm.weight", QN_LAYER_V(attn_norm), .rows = { qn_dim_embd }, .unless = NO_PRE_MIXER, .required = QN_ALWAYS },
    { "blk.%d.attn_norm.bias", QN_LAYER_V(attn_norm_b), .rows = { qn_dim_embd }, .only = NORM_BIAS, .unless = NO_PRE_MIXER,
      .required = QN_F_NORM_BIAS },
};
static const qn_tensor_row post_mixer_rows[] = {
    { "blk.%d.post_attention_norm.weight", QN_LAYER_V(attn_post_norm), .rows = { qn_dim_embd }, .only = QN_F_POST_NORM, .required = QN_ALWAYS },
};
static const qn_tensor_row after_mixer_rows[] = {
    { "blk.%d.attn_output_norm.weight", QN_LAYER_V(attn_post_norm), .rows = { qn_dim_embd }, .only = QN_F_NORM_AFTER, .required = QN_ALWAYS },
    { "blk.%d.attn_output_norm.bias", QN_LAYER_V(attn_post_norm_b), .rows = { qn_dim_embd }, .only = QN_F_NORM_AFTER, .required = QN_F_NORM_BIAS },
    { "blk.%d.attn_norm_2.weight", QN_LAYER_V(again_norm), .rows = { qn_dim_embd }, .only = QN_F_NORM_TWICE, .required = QN_ALWAYS },
    { "blk.%d.attn_norm_2.bias", QN_LAYER_V(again_norm_b), .rows = { qn_dim_embd }, .only = QN_F_NORM_TWICE, .required = QN_F_NORM_BIAS },
};
static const qn_tensor_row after_ff_rows[] = {
    { "blk.%d.layer_output_norm.weight", QN_LAYER_V(ffn_post_norm), .rows = { qn_dim_embd }, .only = QN_F_NORM_AFTER, .required = QN_ALWAYS },
    { "blk.%d.layer_output_norm.bias", QN_LAYER_V(ffn_post_norm_b), .rows = { qn_dim_embd }, .only = QN_F_NORM_AFTER, .required = QN_F_NORM_BIAS },
};
static const qn_tensor_row pre_ff_rows[] = {
    { "blk.%d.ffn_norm.weight", QN_LAYER_V(ffn_norm), .rows = { qn_dim_embd }, .unless = NO_PRE | QN_F_ONE_NORM | QN_F_FF_NORM_NAMED_POST,
      .required = QN_ALWAYS },
    { "blk.%d.post_attention_norm.weight", QN_LAYER_V(ffn_norm), .rows = { qn_dim_embd }, .only = QN_F_FF_NORM_NAMED_POST, .required = QN_ALWAYS },
    { "blk.%d.ffn_norm.bias", QN_LAYER_V(ffn_norm_b), .rows = { qn_dim_embd }, .only = NORM_BIAS, .unless = NO_PRE | QN_F_ONE_NORM,
      .required = QN_F_NORM_BIAS },
};
int64_t qn_dim_one(const qn_net *net, const qn_layer *l) { (void)net, (void)l; return 1; }
static const qn_tensor_row pre_second_rows[] = {
    { "blk.%d.ffn_norm_exps.weight", QN_LAYER_V(second_norm), .rows = { qn_dim_embd }, .required = QN_ALWAYS },
};
static const qn_tensor_row post_ff_rows[] = {
    { "blk.%d.layer_output_scale.weight", QN_LAYER_V(out_scale), .rows = { qn_dim_one }, .only = QN_F_OUT_SCALE },
    { "blk.%d.post_ffw_norm.weight", QN_LAYER_V(ffn_post_norm), .rows = { qn_dim_embd }, .only = QN_F_POST_NORM, .required = QN_ALWAYS },
};

/* A row of the tables for this model: false where it has no such tensor. */
static bool due(const qn_net *net, const qn_tensor_row *r, int32_t i_layer, qn_tensor_due *out)
{
    qn_layer *l = i_layer >= 0 ? &net->layer[i_layer] : NULL;
    const uint64_t features = l ? l->features : net->features;
    if ((r->only && !(r->only & features)) || (r->unless & features)) return false;
    char *base = l ? (char *)l : (char *)(uintptr_t)net;
    *out = (qn_tensor_due){
        .is_vector = r->is_vector,
        .is_optional = (r->required != QN_ALWAYS && !(r->required & features)) || r->unread & features,
        .slices = r->slices ? r->slices(net, l) : 1,
        .n_parts = r->n_at,
        .on_use = r->on_use,
        .in_file = r->in_file,
        .unread = r->unread & features,
        .across = r->across,
        .in_one = r->in_one,
        .turned = r->turned,
    };
    if (r->rows[0](net, l) == QN_NO_TENSOR) return false;
    snprintf(out->name, sizeof out->name, r->name, i_layer);
    int64_t n_rows = 0;
    for (int i = 0; i < r->n_at; i++) {
        out->part_rows[i] = r->rows[i](net, l);
        n_rows += out->part_rows[i];
        if (r->is_vector) out->vector[i] = (qn_vector *)(void *)(base + r->at[i]);
        else out->weight[i] = (qn_weight *)(void *)(base + r->at[i]);
    }
    out->cols = r->is_vector ? n_rows : r->cols(net, l);
    out->rows = r->is_vector ? 1 : n_rows;
    return true;
}

typedef qn_status due_fn(void *user, const qn_tensor_due *t);

static qn_status each_row(const qn_net *net, const qn_tensor_row *rows, size_t n, int32_t i_layer, due_fn *fn, void *user)
{
    qn_tensor_due t;
    for (size_t i = 0; i < n; i++)
        if (due(net, &rows[i], i_layer, &t)) QN_TRY(fn(user, &t));
    return QN_OK;
}

/* Have the architecture's rows one of their own, with another name, for what this row binds? */
static bool is_replaced(const qn_tensor_row *own, int32_t n, const qn_tensor_row *r)
{
    for (int32_t i = 0; i < n; i++)
        if (own[i].at[0] == r->at[0]) return true;
    return false;
}

/* Rows that all architectures share. */
static qn_status each_shared(const qn_net *net, const qn_tensor_row *rows, size_t n, int32_t i_layer, due_fn *fn, void *user)
{
    const qn_arch *a = net->arch;
    for (size_t i = 0; i < n; i++)
        if (!is_replaced(i_layer < 0 ? a->tensors : a->layer_tensors, i_layer < 0 ? a->n_tensors : a->n_layer_tensors, &rows[i]))
            QN_TRY(each_row(net, &rows[i], 1, i_layer, fn, user));
    return QN_OK;
}

#define EACH(rows, i_layer) QN_TRY(each_shared(net, rows, sizeof(rows) / sizeof *(rows), i_layer, fn, user))
qn_status qn_net_each_tensor(const qn_net *net, due_fn *fn, void *user)
{
    const qn_arch *a = net->arch;
    EACH(net_rows, -1);
    QN_TRY(each_row(net, a->tensors, (size_t)a->n_tensors, -1, fn, user));
    for (int32_t i = 0; i < net->n_layer; i++) {
        const qn_layer *l = &net->layer[i];
        const qn_part *mixer = l->mixer, *beside = l->beside, *ff = l->ff, *ff_beside = l->ff_beside, *second = l->second, *around = l->around,
                      *tail = l->tail;
        if (mixer) {
            EACH(pre_mixer_rows, i);
            QN_TRY(each_row(net, mixer->tensors, (size_t)mixer->n_tensors, i, fn, user));
            if (beside) QN_TRY(each_row(net, beside->tensors, (size_t)beside->n_tensors, i, fn, user));
            EACH(post_mixer_rows, i);
            EACH(after_mixer_rows, i);
        }
        if (ff) {
            EACH(pre_ff_rows, i);
            QN_TRY(each_row(net, ff->tensors, (size_t)ff->n_tensors, i, fn, user));
            if (ff_beside) QN_TRY(each_row(net, ff_beside->tensors, (size_t)ff_beside->n_tensors, i, fn, user));
            EACH(post_ff_rows, i);
            EACH(after_ff_rows, i);
        }
        if (second) {
            EACH(pre_second_rows, i);
            QN_TRY(each_row(net, second->tensors, (size_t)second->n_tensors, i, fn, user));
        }
        if (around) QN_TRY(each_row(net, around->tensors, (size_t)around->n_tensors, i, fn, user));
        if (tail) QN_TRY(each_row(net, tail->tensors, (size_t)tail->n_tensors, i, fn, user));
        QN_TRY(each_row(net, a->layer_tensors, (size_t)a->n_layer_tensors, i, fn, user));
    }
    return QN_OK;
}

typedef struct binder {
    const qn_net *net;
    const qn_file *file;
    qn_err *err;
} binder;

/* Of a tensor with slices each slice has all parts, one after the other. */
static qn_status bind_parts(const binder *b, const qn_tensor_due *d, int64_t i_tensor)
{
    int64_t first = 0;
    for (int i = 0; i < d->n_parts; i++) {
        const qn_slice s = { .first = first, .n_rows = d->part_rows[i], .n_parts = (int32_t)d->slices, .stride = d->rows };
        first += d->part_rows[i];
        if (d->is_vector) {
            QN_TRY(qn_vector_bind(d->vector[i], b->file, i_tensor, s.first, s.n_rows * d->slices, b->err));
            if (d->across) QN_TRY(qn_vector_turn(d->vector[i], d->cols, b->err));
            continue;
        }
        QN_TRY(qn_weight_bind(d->weight[i], b->file, i_tensor, &s, b->err));
        if (d->turned >> i & 1 && !qn_weight_turn(d->weight[i])) return qn_fail(b->err, QN_ERR_FORMAT, "tensor %s is too large", d->name);
        d->weight[i]->on_use = d->on_use;
        if (d->in_file) qn_weight_leave(d->weight[i]);
    }
    return QN_OK;
}

static qn_status bind(void *user, const qn_tensor_due *d)
{
    const binder *b = user;
    qn_tensor_info t;
    const int64_t i = qn_file_tensor_find(b->file, d->name);
    if (i < 0 && d->is_optional) return QN_OK;
    if (i < 0) return qn_fail(b->err, QN_ERR_FORMAT, "tensor %s is missing (architecture %s, %d layers)", d->name, b->net->arch->name, b->net->n_layer);
    qn_file_tensor_at(b->file, i, &t);
    const int64_t due_rows = d->is_vector ? d->slices : d->in_one ? d->rows * d->slices : d->rows, due_slices = d->is_vector || d->in_one ? 1 : d->slices;
    const bool flat = d->is_vector && d->slices == 1 && t.dims[0] * t.dims[1] == d->cols; /* a weight for each head may be written as a matrix */
    if (!(flat || (t.dims[0] == d->cols && t.dims[1] == due_rows)) || t.dims[2] != due_slices || t.dims[3] != 1)
        return qn_fail(b->err, QN_ERR_FORMAT, "tensor %s has the shape [%lld, %lld, %lld, %lld]; this model's is [%lld, %lld, %lld]", d->name,
                       (long long)t.dims[0], (long long)t.dims[1], (long long)t.dims[2], (long long)t.dims[3], (long long)d->cols, (long long)due_rows,
                       (long long)due_slices);
    b->net->used[i] = 1;
    return d->unread ? QN_OK : bind_parts(b, d, i);
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

/* One of the layers that predict further tokens. */
static bool is_of_draft(const qn_net *net, qn_str name)
{
    char prefix[32];
    for (int32_t i = net->n_layer; i < net->n_layer + net->n_draft; i++) {
        const size_t n = (size_t)snprintf(prefix, sizeof prefix, "blk.%d.", i);
        if (name.len > n && !memcmp(name.ptr, prefix, n)) return true;
    }
    return false;
}

/* A tensor that nothing reads would change what the model computes: refused, not ignored. */
static qn_status all_used(const qn_net *net, const qn_file *file, qn_err *err)
{
    for (int64_t i = 0; i < qn_file_n_tensors(file); i++) {
        qn_tensor_info t;
        if (net->used[i] || !qn_file_tensor_at(file, i, &t) || is_leftover(t.name) || is_of_draft(net, t.name)) continue;
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
    for (int i = 0; i < t->n_parts && !t->unread; i++) {
        if (t->is_vector && t->vector[i]->n) QN_TRY(v->vector(v->user, t->vector[i]));
        if (!t->is_vector && qn_weight_present(t->weight[i])) QN_TRY(v->weight(v->user, t->weight[i]));
    }
    return QN_OK;
}

qn_status qn_net_visit(qn_net *net, const qn_net_visitor *v)
{
    return qn_net_each_tensor(net, visit, (void *)(uintptr_t)v);
}

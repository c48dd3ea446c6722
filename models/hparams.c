#include "models/model.h"

#include "src/base/mem.h"
#include "src/format/keys.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NET(field) offsetof(qn_net, field)
static const qn_key_row net_keys[] = {
    { "embedding_length", QN_KEY_NET, NET(n_embd), true, 1, 1 << 20 },
    { "context_length", QN_KEY_NET, NET(n_ctx_train), true, 1, INT32_MAX },
    { "attention.causal", QN_KEY_NET, NET(is_causal), false, 0, 1 },
    { "pooling_type", QN_KEY_HOOK, 0, false, 0, 0 },
    { "classifier.pooling_type", QN_KEY_HOOK, 0, false, 0, 0 },
};
static const qn_key_row rms_key = { "attention.layer_norm_rms_epsilon", QN_KEY_FLOAT, NET(norm_eps), true, 0, 0 };
static const qn_key_row layer_norm_key = { "attention.layer_norm_epsilon", QN_KEY_FLOAT, NET(norm_eps), true, 0, 0 };

static const qn_key_row *norm_key(const qn_arch *a)
{
    return a->features & QN_F_LAYER_NORM ? &layer_norm_key : &rms_key;
}

typedef qn_status key_fn(void *user, const qn_key_row *k);

static qn_status each_row(const qn_key_row *rows, int32_t n, key_fn *fn, void *user)
{
    for (int32_t i = 0; i < n; i++) QN_TRY(fn(user, &rows[i]));
    return QN_OK;
}

/* Does one of the first n parts read this key too? */
static bool is_read(const qn_part *const *parts, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        for (int32_t j = 0; parts[i] && j < parts[i]->n_keys; j++)
            if (!strcmp(parts[i]->keys[j].name, name)) return true;
    return false;
}

qn_status qn_arch_each_key(const qn_arch *a, key_fn *fn, void *user)
{
    enum { N_PARTS = 3 + QN_MAX_OTHERS };
    const qn_part own = { .keys = a->keys, .n_keys = a->n_keys }, *parts[N_PARTS] = { &own, a->mixer, a->ff };
    memcpy(parts + 3, a->others, sizeof a->others);
    QN_TRY(each_row(net_keys, sizeof net_keys / sizeof *net_keys, fn, user));
    QN_TRY(fn(user, norm_key(a)));
    for (int p = 0; p < N_PARTS; p++)
        for (int32_t i = 0; parts[p] && i < parts[p]->n_keys; i++)
            if (!is_read(parts, p, parts[p]->keys[i].name)) QN_TRY(fn(user, &parts[p]->keys[i]));
    return QN_OK;
}

/* The parts of a layer; NULL: it has no such. */
enum { N_LAYER_PARTS = 7 };
static const qn_part *part_of(const qn_layer *l, int p)
{
    return (const qn_part *const[]){ l->mixer, l->beside, l->ff, l->ff_beside, l->second, l->around, l->tail }[p];
}

/* Does no layer before i_layer have this part? */
static bool is_first(const qn_net *net, int32_t i_layer, const qn_part *part)
{
    for (int32_t i = 0; i < i_layer; i++)
        for (int p = 0; p < N_LAYER_PARTS; p++)
            if (part_of(&net->layer[i], p) == part) return false;
    return true;
}

typedef struct key_search {
    const char *name;
    bool found;
} key_search;

static qn_status is_named(void *user, const qn_key_row *k)
{
    key_search *s = user;
    s->found |= !strcmp(k->name, s->name);
    return QN_OK;
}

/* Things that change what a model computes and that this architecture's blocks do not read: refused by name, never ignored. */
static qn_status refuse_extras(const qn_net *net, const qn_file *file, qn_err *err)
{
    static const struct {
        const char *name;
        float neutral; /* 0 is too. 50 and 30 are what llama.cpp writes into files of any architecture that it saves itself */
    } extras[] = {
        { "expert_count", 0 }, { "attention.clamp_kqv", 0 }, { "attention.max_alibi_bias", 0 }, { "logit_scale", 1 }, { "residual_scale", 1 },
        { "embedding_scale", 1 }, { "attn_logit_softcapping", 50 }, { "final_logit_softcapping", 30 }, { "attention.sliding_window", 0 },
        { "attention.temperature_scale", 0 },
    };
    for (size_t i = 0; i < sizeof extras / sizeof *extras; i++) {
        key_search known = { .name = extras[i].name };
        float v = 0;
        (void)qn_arch_each_key(net->arch, is_named, &known);
        if (known.found) continue;
        const qn_status s = qn_net_read_f32(net, file, extras[i].name, &v, err);
        if (s != QN_OK || (v != 0 && v != extras[i].neutral))
            return qn_fail(err, QN_ERR_UNSUPPORTED, "the model sets %s.%s, which quern does not support for this architecture", net->arch->name,
                           extras[i].name);
    }
    return QN_OK;
}

/* What a file may do in one of two ways: by the tensors that it has. */
static void look_at_tensors(qn_layer *l, const qn_file *file, int32_t i)
{
    if (qn_net_has_tensor(file, "blk.%d.attn_qkv.weight", i)) l->features |= QN_F_QKV_FUSED;
    else if (qn_net_has_tensor(file, "blk.%d.attn_q.weight", i)) l->features &= ~QN_F_QKV_FUSED;
    if (l->features & QN_F_QK_NORM_OPTIONAL && !qn_net_has_tensor(file, "blk.%d.attn_q_norm.weight", i))
        l->features &= ~(QN_F_QK_NORM | QN_F_QK_NORM_HEADS | QN_F_QK_NORM_WIDE);
}

static qn_status open_layers(qn_net *net, const qn_file *file, qn_err *err)
{
    const qn_arch *a = net->arch;
    net->layer = qn_new((size_t)net->n_layer, sizeof *net->layer);
    if (!net->layer) return qn_fail(err, QN_ERR_NOMEM, "no memory for %d layers", net->n_layer);
    for (int32_t i = 0; i < net->n_layer; i++) {
        qn_layer *l = &net->layer[i];
        l->mixer = a->mixer;
        l->ff = a->ff;
        l->features = a->features;
        l->i_kv = i;
        l->mixed_scale = 1;
        l->deviations = -INFINITY;
        look_at_tensors(l, file, i);
    }
    return a->layers ? a->layers(net, file, err) : QN_OK;
}

static qn_status check_parts(qn_net *net, int32_t i, qn_err *err)
{
    qn_layer *l = &net->layer[i];
    const bool attends = (l->mixer && l->mixer->attends) || (l->beside && l->beside->attends);
    if (!attends) l->n_head_kv = l->head_dim = l->head_dim_v = 0; /* what the file says of all layers */
    for (int p = 0; p < N_LAYER_PARTS; p++)
        if (part_of(l, p) && part_of(l, p)->check) QN_TRY(part_of(l, p)->check(net, l, i, err));
    return QN_OK;
}

static qn_status read_parts(qn_net *net, const qn_file *file, qn_err *err)
{
    for (int32_t i = 0; i < net->n_layer; i++) {
        for (int p = 0; p < N_LAYER_PARTS; p++) {
            const qn_part *part = part_of(&net->layer[i], p);
            if (part && is_first(net, i, part)) QN_TRY(qn_net_read_keys(net, file, part->keys, part->n_keys, err));
        }
    }
    for (int32_t i = 0; i < net->n_layer; i++) QN_TRY(check_parts(net, i, err));
    return QN_OK;
}

/* Angles and the scale of attention are those of one size for all layers; an architecture may change it afterwards (qn_net_windowed_heads). */
static qn_status read_head_dim(qn_net *net, qn_err *err)
{
    for (int32_t i = 0; i < net->n_layer; i++) {
        const int32_t n = net->layer[i].head_dim;
        if (n && net->head_dim && n != net->head_dim)
            return qn_fail(err, QN_ERR_UNSUPPORTED, "layer %d has heads of %d dimensions and a layer before it of %d; quern has one size for all layers", i,
                           n, net->head_dim);
        if (n) net->head_dim = n;
    }
    return QN_OK;
}

/* Values that stand where the file says nothing. */
static void set_defaults(qn_net *net)
{
    net->logit_scale = net->residual_scale = net->value_scale = 1;
    if (net->features & QN_F_ALIBI) net->max_alibi_bias = 8;
    net->act = net->arch->act;
    net->embed_scale = net->features & QN_F_EMBED_SQRT ? sqrtf((float)net->n_embd) : 1;
}

/* The number of token types is a key of the tokenizer. */
static qn_status read_token_types(qn_net *net, const qn_file *file, qn_err *err)
{
    int64_t n = 2;
    if (!(net->features & QN_F_TOKEN_TYPES)) return QN_OK;
    const qn_status s = qn_key_i64(file, "tokenizer.ggml.token_type_count", "", 1, 1 << 16, &n, err);
    net->n_types = (int32_t)n;
    return s == QN_ERR_NOT_FOUND ? QN_OK : s;
}

/* A decoder made into an encoder: of what it has learnt all but the mask is kept (BehnamGhader et al. 2024). */
static qn_status see_all(qn_net *net, qn_err *err)
{
    if (net->is_causal) return QN_OK;
    net->features |= QN_F_ENCODER;
    for (int32_t i = 0; i < net->n_layer; i++)
        if (net->layer[i].state_floats)
            return qn_fail(err, QN_ERR_UNSUPPORTED, "%s.attention.causal is false, and layer %d has a state: it sees what came before alone",
                           net->arch->name, i);
    return QN_OK;
}

/* -1, also as an unsigned number, is that of files that leave it open. */
static qn_status read_pooling(const qn_net *net, const qn_file *file, const char *name, int32_t *out, qn_err *err)
{
    int32_t v = -1;
    QN_TRY(qn_net_read_i32(net, file, name, -1, UINT32_MAX, &v, err));
    if (v < -1 || v > QN_FILE_POOLING_RANK)
        return qn_fail(err, QN_ERR_UNSUPPORTED, "%s.%s is %u; quern knows 0 to %d", net->arch->name, name, (unsigned)v, QN_FILE_POOLING_RANK);
    *out = v == -1 ? QN_FILE_POOLING_NONE : v;
    return QN_OK;
}

/* A classifier's sides are those of its tensors. */
static void size_classifier(qn_net *net, const qn_file *file)
{
    qn_tensor_info t;
    const int64_t cls = qn_file_tensor_find(file, "cls.weight"), out = qn_file_tensor_find(file, "cls.output.weight");
    if (qn_file_tensor_at(file, cls, &t)) net->n_cls = out < 0 && t.dims[1] <= QN_MAX_LABELS ? (int32_t)t.dims[1] : net->n_embd;
    if (qn_file_tensor_at(file, out, &t)) net->n_labels = t.dims[1] <= QN_MAX_LABELS ? (int32_t)t.dims[1] : 0;
    else if (net->n_cls != net->n_embd) net->n_labels = net->n_cls; /* else it is a pooler that nothing was trained behind */
}

static qn_status check_positive(const qn_net *net, const char *name, float v, qn_err *err)
{
    return v > 0 ? QN_OK : qn_fail(err, QN_ERR_FORMAT, "%s.%s is %g; it must be above 0", net->arch->name, name, (double)v);
}

qn_status qn_net_read_hparams(qn_net *net, const qn_file *file, qn_err *err)
{
    int64_t n_layer;
    net->features = net->arch->features;
    net->is_causal = 1;
    QN_TRY(qn_key_i64(file, "%s.block_count", net->arch->name, 1, QN_MAX_LAYERS, &n_layer, err));
    QN_TRY(qn_net_read_i32(net, file, "nextn_predict_layers", 0, n_layer - 1, &net->n_draft, err));
    net->n_layer = (int32_t)n_layer - net->n_draft;
    QN_TRY(qn_net_read_keys(net, file, net_keys, sizeof net_keys / sizeof *net_keys, err));
    QN_TRY(read_pooling(net, file, "pooling_type", &net->pooling, err));
    QN_TRY(read_pooling(net, file, "classifier.pooling_type", &net->classifier_pooling, err));
    QN_TRY(qn_net_read_keys(net, file, norm_key(net->arch), 1, err));
    QN_TRY(check_positive(net, norm_key(net->arch)->name, net->norm_eps, err));
    set_defaults(net);
    QN_TRY(open_layers(net, file, err));
    QN_TRY(refuse_extras(net, file, err));
    QN_TRY(qn_net_read_keys(net, file, net->arch->keys, net->arch->n_keys, err));
    if (!(net->max_alibi_bias >= 0 && net->max_alibi_bias <= QN_MAX_ALIBI_BIAS))
        return qn_fail(err, QN_ERR_FORMAT, "%s.attention.max_alibi_bias is %g; it must be from 0 to %d", net->arch->name, (double)net->max_alibi_bias,
                       QN_MAX_ALIBI_BIAS);
    QN_TRY(read_parts(net, file, err));
    QN_TRY(read_head_dim(net, err));
    QN_TRY(qn_net_read_rope(net, file, err));
    if (net->features & QN_F_POSITIONS) net->n_positions = net->n_ctx_train;
    if (net->logit_scale == 0) net->logit_scale = 1;
    if (net->value_scale == 0) net->value_scale = 1;
    if (net->attn_scale == 0 && net->head_dim) net->attn_scale = 1 / sqrtf((float)net->head_dim);
    size_classifier(net, file);
    QN_TRY(read_token_types(net, file, err));
    if (net->arch->adjust) QN_TRY(net->arch->adjust(net, file, err));
    return see_all(net, err);
}

#include "models/model.h"

#include "src/base/mem.h"
#include "src/format/keys.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Keys that every layer has, as one number or one number a layer. */
typedef struct layer_key {
    const char *key;
    size_t offset;               /* of an int32_t in qn_layer                                */
    int64_t hi;
    bool required;
} layer_key;

#define AT(field) offsetof(qn_layer, field)
static const layer_key layer_keys[] = {
    { "%s.attention.head_count", AT(n_head), 1 << 16, true },
    { "%s.attention.head_count_kv", AT(n_head_kv), 1 << 16, false },
    { "%s.feed_forward_length", AT(n_ff), 1 << 24, true },
    { "%s.attention.key_length", AT(head_dim), QN_MAX_HEAD_DIM, false },
    { "%s.attention.value_length", AT(head_dim_v), QN_MAX_HEAD_DIM, false },
    { "%s.attention.sliding_window", AT(window), INT32_MAX, false },
};

static int32_t *field(qn_layer *l, size_t offset)
{
    return (int32_t *)((char *)l + offset);
}

static qn_status per_layer(qn_net *net, const layer_key *k, const qn_value *v, qn_err *err)
{
    qn_value_iter it = qn_value_iterate(v);
    qn_value e;
    if (v->count < (uint64_t)net->n_layer)
        return qn_fail(err, QN_ERR_FORMAT, "key %s has %llu elements for %d layers", k->key + 3, (unsigned long long)v->count, net->n_layer);
    for (int32_t i = 0; i < net->n_layer && qn_value_next(&it, &e); i++) {
        int64_t n;
        if (qn_value_as_i64(&e, &n) != QN_OK || n < 0 || n > k->hi)
            return qn_fail(err, QN_ERR_FORMAT, "key %s.%s: element %d is not a number from 0 to %lld", net->arch->name, k->key + 3, i, (long long)k->hi);
        *field(&net->layer[i], k->offset) = (int32_t)n;
    }
    return QN_OK;
}

static qn_status read_layer_key(qn_net *net, const qn_file *file, const layer_key *k, qn_err *err)
{
    qn_value v;
    char name[128];
    int64_t n = 0;
    snprintf(name, sizeof name, k->key, net->arch->name);
    if (qn_file_key(file, name, &v) && v.type == QN_V_ARRAY) return per_layer(net, k, &v, err);
    const qn_status s = qn_key_i64(file, k->key, net->arch->name, 0, k->hi, &n, err);
    if (s == QN_ERR_NOT_FOUND && !k->required) return QN_OK;
    QN_TRY(s);
    for (int32_t i = 0; i < net->n_layer; i++) *field(&net->layer[i], k->offset) = (int32_t)n;
    return QN_OK;
}

/* Fill in what the file left out, and refuse what no kernel can do. */
static qn_status check_layer(const qn_net *net, qn_layer *l, int32_t i, qn_err *err)
{
    if (l->n_head < 1 || l->n_ff < 1)
        return qn_fail(err, QN_ERR_FORMAT, "layer %d has %d heads and %d feed-forward rows; both must be at least 1", i, l->n_head, l->n_ff);
    if (l->n_head_kv == 0) l->n_head_kv = l->n_head;
    if (l->n_head % l->n_head_kv)
        return qn_fail(err, QN_ERR_FORMAT, "layer %d: %d heads do not divide into %d KV heads", i, l->n_head, l->n_head_kv);
    if (l->head_dim == 0) l->head_dim = net->n_embd / l->n_head;
    if (l->head_dim_v == 0) l->head_dim_v = l->head_dim;
    if (l->head_dim < 8 || l->head_dim % 8 || l->head_dim > QN_MAX_HEAD_DIM || l->head_dim_v % 8 || l->head_dim_v > QN_MAX_HEAD_DIM)
        return qn_fail(err, QN_ERR_UNSUPPORTED, "layer %d: heads of %d and %d dimensions; quern has multiples of 8 up to %d", i, l->head_dim,
                       l->head_dim_v, QN_MAX_HEAD_DIM);
    if (l->head_dim != net->layer[0].head_dim) /* angles and the scale of attention are those of one size for all layers */
        return qn_fail(err, QN_ERR_UNSUPPORTED, "layer %d has heads of %d dimensions and layer 0 of %d; quern has one size for all layers", i,
                       l->head_dim, net->layer[0].head_dim);
    if ((int64_t)l->n_head * l->head_dim > 1 << 24 || (int64_t)l->n_head * l->head_dim_v > 1 << 24)
        return qn_fail(err, QN_ERR_UNSUPPORTED, "layer %d: %d heads of %d dimensions are too many", i, l->n_head, l->head_dim);
    return QN_OK;
}

static qn_status optional_f32(const qn_file *file, const char *key, const char *arch, double *out, qn_err *err)
{
    float v;
    const qn_status s = qn_key_f32(file, key, arch, &v, err);
    if (s == QN_ERR_NOT_FOUND) return QN_OK;
    QN_TRY(s);
    *out = v;
    return QN_OK;
}

static qn_status read_rope_scaling(qn_rope *r, const qn_file *file, const char *arch, int32_t n_ctx_train, qn_err *err)
{
    qn_str type = QN_LIT("none");
    double factor = 1;
    int64_t n_ctx_orig = n_ctx_train;
    const qn_status s = qn_key_str(file, "%s.rope.scaling.type", arch, &type, err);
    if (s != QN_OK && s != QN_ERR_NOT_FOUND) return s;
    QN_TRY(optional_f32(file, "%s.rope.scaling.factor", arch, &factor, err));
    if (s == QN_ERR_NOT_FOUND) QN_TRY(optional_f32(file, "%s.rope.scale_linear", arch, &factor, err));
    if (s == QN_ERR_NOT_FOUND && factor != 1) type = QN_LIT("linear");
    if (factor == 0) factor = 1;
    if (!(factor > 0)) return qn_fail(err, QN_ERR_FORMAT, "%s.rope.scaling.factor is %g; it must be above 0", arch, factor);
    const qn_status o = qn_key_i64(file, "%s.rope.scaling.original_context_length", arch, 1, INT32_MAX, &n_ctx_orig, err);
    if (o != QN_OK && o != QN_ERR_NOT_FOUND) return o;
    r->n_ctx_orig = (int32_t)n_ctx_orig;
    r->beta_fast = 32;
    r->beta_slow = 1;
    if (type.len == 4 && !memcmp(type.ptr, "yarn", 4)) {
        r->freq_scale = 1 / factor;
        r->ext_factor = 1;
        r->attn_factor = 1;
        QN_TRY(optional_f32(file, "%s.rope.scaling.attn_factor", arch, &r->attn_factor, err));
        QN_TRY(optional_f32(file, "%s.rope.scaling.yarn_ext_factor", arch, &r->ext_factor, err));
        QN_TRY(optional_f32(file, "%s.rope.scaling.yarn_attn_factor", arch, &r->attn_factor, err));
        QN_TRY(optional_f32(file, "%s.rope.scaling.yarn_beta_fast", arch, &r->beta_fast, err));
        return optional_f32(file, "%s.rope.scaling.yarn_beta_slow", arch, &r->beta_slow, err);
    }
    if (type.len == 6 && !memcmp(type.ptr, "linear", 6)) {
        r->freq_scale = 1 / factor;
        return QN_OK;
    }
    if ((type.len == 4 && !memcmp(type.ptr, "none", 4)) || type.len == 0) return QN_OK;
    return qn_fail(err, QN_ERR_UNSUPPORTED, "%s.rope.scaling.type is \"%.*s\"; quern knows none, linear and yarn", arch, QN_STR_ARG(type));
}

static qn_status read_rope(qn_net *net, const qn_file *file, qn_err *err)
{
    const char *arch = net->arch->name;
    qn_rope *r = &net->rope[0];
    int64_t n_rot = net->layer[0].head_dim;
    *r = (qn_rope){ .neox = net->arch->features & QN_F_ROPE_NEOX, .base = 10000, .freq_scale = 1 };
    const qn_status s = qn_key_i64(file, "%s.rope.dimension_count", arch, 0, net->layer[0].head_dim, &n_rot, err);
    if (s != QN_OK && s != QN_ERR_NOT_FOUND) return s;
    if (n_rot % 2) return qn_fail(err, QN_ERR_FORMAT, "%s.rope.dimension_count is %lld; it must be even", arch, (long long)n_rot);
    r->n_rot = (int32_t)n_rot;
    QN_TRY(optional_f32(file, "%s.rope.freq_base", arch, &r->base, err));
    if (!(r->base > 0)) return qn_fail(err, QN_ERR_FORMAT, "%s.rope.freq_base is %g; it must be above 0", arch, r->base);
    net->n_ropes = 1;
    return read_rope_scaling(r, file, arch, net->n_ctx_train, err);
}

/* Things that change what a model computes and that quern's blocks do not have yet: refused by name, never ignored. */
static qn_status refuse_extras(const qn_net *net, const qn_file *file, qn_err *err)
{
    static const char *const extras[] = { "%s.expert_count", "%s.attention.clamp_kqv", "%s.attention.max_alibi_bias" };
    for (size_t i = 0; i < sizeof extras / sizeof *extras; i++) {
        float v = 0;
        const qn_status s = qn_key_f32(file, extras[i], net->arch->name, &v, err);
        int64_t n = 0;
        if (s == QN_ERR_TYPE) (void)qn_key_i64(file, extras[i], net->arch->name, 0, INT64_MAX, &n, err);
        if (v != 0 || n != 0)
            return qn_fail(err, QN_ERR_UNSUPPORTED, "the model sets %s.%s, which quern does not support for this architecture", net->arch->name,
                           extras[i] + 3);
    }
    return QN_OK;
}

qn_status qn_net_read_hparams(qn_net *net, const qn_file *file, qn_err *err)
{
    const char *arch = net->arch->name;
    int64_t n_layer, n_embd, n_ctx;
    QN_TRY(qn_key_i64(file, "%s.block_count", arch, 1, QN_MAX_LAYERS, &n_layer, err));
    QN_TRY(qn_key_i64(file, "%s.embedding_length", arch, 1, 1 << 20, &n_embd, err));
    QN_TRY(qn_key_i64(file, "%s.context_length", arch, 1, INT32_MAX, &n_ctx, err));
    QN_TRY(qn_key_f32(file, "%s.attention.layer_norm_rms_epsilon", arch, &net->norm_eps, err));
    if (!(net->norm_eps > 0)) return qn_fail(err, QN_ERR_FORMAT, "%s.attention.layer_norm_rms_epsilon is %g", arch, (double)net->norm_eps);
    QN_TRY(refuse_extras(net, file, err));
    net->n_layer = (int32_t)n_layer;
    net->n_embd = (int32_t)n_embd;
    net->n_ctx_train = (int32_t)n_ctx;
    net->layer = qn_new((size_t)n_layer, sizeof *net->layer);
    if (!net->layer) return qn_fail(err, QN_ERR_NOMEM, "no memory for %lld layers", (long long)n_layer);
    for (size_t i = 0; i < sizeof layer_keys / sizeof *layer_keys; i++) QN_TRY(read_layer_key(net, file, &layer_keys[i], err));
    for (int32_t i = 0; i < net->n_layer; i++) QN_TRY(check_layer(net, &net->layer[i], i, err));
    QN_TRY(read_rope(net, file, err));
    double softcap = 0;
    QN_TRY(optional_f32(file, "%s.final_logit_softcapping", arch, &softcap, err));
    net->logit_softcap = (float)softcap;
    net->logit_scale = 1;
    net->attn_scale = 1 / sqrtf((float)net->layer[0].head_dim);
    net->embed_scale = net->arch->features & QN_F_EMBED_SQRT ? sqrtf((float)net->n_embd) : 1;
    return net->arch->adjust ? net->arch->adjust(net, file, err) : QN_OK;
}

#include "models/model.h"

#include <math.h>

static const qn_key_row keys[] = {
    { "attention.scale", QN_KEY_FLOAT, offsetof(qn_net, attn_scale), false, 0, 0 },
    { "xielu.alpha_p", QN_KEY_HOOK, 0, false, 0, 0 }, /* these without the architecture before them */
    { "xielu.alpha_n", QN_KEY_HOOK, 0, false, 0, 0 },
    { "xielu.beta", QN_KEY_HOOK, 0, false, 0, 0 },
    { "xielu.eps", QN_KEY_HOOK, 0, false, 0, 0 },
};

static qn_status set(const qn_value *v, const char *name, int32_t i, float *out, qn_err *err)
{
    double d;
    if (qn_value_as_f64(v, &d) != QN_OK || !(d > -1e6 && d < 1e6))
        return qn_fail(err, QN_ERR_FORMAT, "key %s: what it has of layer %d is not a number within a million", name, i);
    *out = (float)d;
    return QN_OK;
}

/* One number for all layers, or one for each. */
static qn_status read_layers(const qn_net *net, const qn_file *file, const char *name, size_t offset, qn_err *err)
{
    qn_value v, e;
    if (!qn_file_key(file, name, &v)) return qn_fail(err, QN_ERR_FORMAT, "key %s is missing", name);
    const bool each = v.type == QN_V_ARRAY;
    if (each && v.count < (uint64_t)net->n_layer)
        return qn_fail(err, QN_ERR_FORMAT, "key %s has %llu elements; %d are due", name, (unsigned long long)v.count, net->n_layer);
    qn_value_iter it = qn_value_iterate(&v);
    for (int32_t i = 0; i < net->n_layer; i++) {
        if (each) (void)qn_value_next(&it, &e);
        QN_TRY(set(each ? &e : &v, name, i, (float *)(void *)((char *)&net->layer[i].xielu + offset), err));
    }
    return QN_OK;
}

static float softplus(float x)
{
    return (float)(x > 20 ? (double)x : log1p(exp((double)x)));
}

/* The file has the numbers as they are trained; what is made of them keeps both slopes positive. */
static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    QN_TRY(read_layers(net, file, "xielu.alpha_p", offsetof(qn_xielu, positive), err));
    QN_TRY(read_layers(net, file, "xielu.alpha_n", offsetof(qn_xielu, negative), err));
    QN_TRY(read_layers(net, file, "xielu.beta", offsetof(qn_xielu, beta), err));
    QN_TRY(read_layers(net, file, "xielu.eps", offsetof(qn_xielu, most), err));
    for (int32_t i = 0; i < net->n_layer; i++) {
        qn_xielu *a = &net->layer[i].xielu;
        a->positive = softplus(a->positive);
        a->negative = a->beta + softplus(a->negative);
    }
    return QN_OK;
}

extern const qn_arch qn_arch_apertus;
const qn_arch qn_arch_apertus = {
    .name = "apertus",
    .covers = "Apertus 8B and 70B",
    .features = QN_F_QK_NORM | QN_F_NO_GATE | QN_F_XIELU | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_NONE,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .layers = layers,
};

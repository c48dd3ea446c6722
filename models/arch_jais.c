#include "models/model.h"

static const qn_key_row keys[] = { { "attention.max_alibi_bias", QN_KEY_FLOAT, offsetof(qn_net, max_alibi_bias), false, 0, 0 } };

/* Trained at a width of its own (muP, Yang et al. 2022): scores are divided by a head's size, not by its root. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    (void)file;
    (void)err;
    net->attn_scale = 1 / (float)net->head_dim;
    return QN_OK;
}

extern const qn_arch qn_arch_jais;
const qn_arch qn_arch_jais = {
    .name = "jais",
    .covers = "Jais 1.3B to 30B",
    .features = QN_F_QKV_BIAS | QN_F_OUT_BIAS | QN_F_FF_BIAS | QN_F_QKV_FUSED | QN_F_LAYER_NORM | QN_F_NORM_BIAS | QN_F_NO_ROPE,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .adjust = adjust,
};

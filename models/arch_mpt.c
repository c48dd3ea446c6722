#include "models/model.h"

static const qn_key_row keys[] = {
    { "attention.clamp_kqv", QN_KEY_FLOAT, offsetof(qn_net, kqv_clamp), false, 0, 0 },
    { "attention.max_alibi_bias", QN_KEY_FLOAT, offsetof(qn_net, max_alibi_bias), false, 0, 0 },
};

/* A model without ALiBi has an embedding for each position. */
static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    (void)err;
    if (qn_file_tensor_find(file, "position_embd.weight") >= 0) net->features |= QN_F_POSITIONS;
    return QN_OK;
}

extern const qn_arch qn_arch_mpt;
const qn_arch qn_arch_mpt = {
    .name = "mpt",
    .covers = "MPT 7B and 30B",
    .features = QN_F_BIAS_OPTIONAL | QN_F_QKV_FUSED | QN_F_NO_GATE | QN_F_LAYER_NORM | QN_F_NORM_BIAS_OPTIONAL | QN_F_NO_ROPE |
                QN_F_QK_NORM_WIDE | QN_F_QK_NORM_OPTIONAL,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_GELU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .layers = layers,
};

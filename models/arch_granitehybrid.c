#include "models/granite.h"

#define NET(field) offsetof(qn_net, field)
static const qn_key_row keys[] = {
    { "logit_scale", QN_KEY_FLOAT, NET(logit_scale), false, 0, 0 },
    { "residual_scale", QN_KEY_FLOAT, NET(residual_scale), false, 0, 0 },
    { "embedding_scale", QN_KEY_FLOAT, NET(embed_scale), false, 0, 0 },
    { "attention.scale", QN_KEY_FLOAT, NET(attn_scale), false, 0, 0 },
    { "attention.head_count_kv", QN_KEY_HOOK, 0, false, 0, 0 },
    { "rope.scaling.finetuned", QN_KEY_HOOK, 0, false, 0, 0 },
};

static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    QN_TRY(qn_layers_without_kv(net, file, &qn_mix_ssm, err));
    return qn_layers_experts(net, file, err);
}

static const qn_expert_rules experts = { .gate = QN_GATE_SOFTMAX, .normalised = true };

extern const qn_arch qn_arch_granitehybrid;
const qn_arch qn_arch_granitehybrid = {
    .name = "granitehybrid",
    .covers = "Granite 4.0 H 350M to Small",
    .features = QN_F_BIAS_OPTIONAL,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .others = { &qn_mix_ssm, &qn_ff_experts },
    .experts = &experts,
    .act = QN_UNARY_SILU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .layers = layers,
    .adjust = qn_granite_adjust,
};

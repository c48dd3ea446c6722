#include "models/model.h"

#define NET(field) offsetof(qn_net, field)
static const qn_key_row keys[] = {
    { "logit_scale", QN_KEY_FLOAT, NET(logit_scale), true, 0, 0 },
    { "residual_scale", QN_KEY_FLOAT, NET(residual_scale), false, 0, 0 },
    { "embedding_scale", QN_KEY_FLOAT, NET(embed_scale), false, 0, 0 },
    { "attention.scale", QN_KEY_FLOAT, NET(attn_scale), false, 0, 0 },
};

/* Logits are divided by their scale (IBM Granite Team 2025). */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    (void)file;
    if (net->logit_scale == 0) return qn_fail(err, QN_ERR_FORMAT, "%s.logit_scale is 0", net->arch->name);
    net->logit_scale = 1 / net->logit_scale;
    return QN_OK;
}

static const qn_expert_rules experts = { .gate = QN_GATE_SOFTMAX, .normalised = true };

extern const qn_arch qn_arch_granitemoe;
const qn_arch qn_arch_granitemoe = {
    .name = "granitemoe",
    .covers = "Granite 3 1B A400M and 3B A800M",
    .features = QN_F_BIAS_OPTIONAL,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .others = { &qn_ff_experts },
    .experts = &experts,
    .act = QN_UNARY_SILU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .layers = qn_layers_experts,
    .adjust = adjust,
};

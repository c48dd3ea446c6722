#include "models/granite.h"

const qn_key_row qn_granite_keys[QN_GRANITE_KEYS] = {
    { "logit_scale", QN_KEY_FLOAT, offsetof(qn_net, logit_scale), true, 0, 0 },
    { "residual_scale", QN_KEY_FLOAT, offsetof(qn_net, residual_scale), false, 0, 0 },
    { "embedding_scale", QN_KEY_FLOAT, offsetof(qn_net, embed_scale), false, 0, 0 },
    { "attention.scale", QN_KEY_FLOAT, offsetof(qn_net, attn_scale), false, 0, 0 },
    { "rope.scaling.finetuned", QN_KEY_HOOK, 0, false, 0, 0 },
};

/* Logits are divided by their scale (IBM Granite Team 2025). A scale of 0 stands for none. */
qn_status qn_granite_adjust_scales(qn_net *net, const qn_file *file, qn_err *err)
{
    (void)file;
    if (!(net->logit_scale > 0)) return qn_fail(err, QN_ERR_FORMAT, "%s.logit_scale is %g; it must be above 0", net->arch->name,
                                                (double)net->logit_scale);
    net->logit_scale = 1 / net->logit_scale;
    if (net->residual_scale == 0) net->residual_scale = 1;
    if (net->embed_scale == 0) net->embed_scale = 1;
    return QN_OK;
}

/* A file that says its angles were not trained has none. */
qn_status qn_granite_adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    int32_t rotates = 1;
    QN_TRY(qn_granite_adjust_scales(net, file, err));
    QN_TRY(qn_net_read_i32(net, file, "rope.scaling.finetuned", 0, 1, &rotates, err));
    for (int32_t i = 0; i < net->n_layer && !rotates; i++) net->layer[i].i_rope = -1;
    return QN_OK;
}

static const qn_expert_rules experts = { .gate = QN_GATE_SOFTMAX, .normalised = true };

extern const qn_arch qn_arch_granite;
const qn_arch qn_arch_granite = {
    .name = "granite",
    .covers = "Granite 3 and 4 (dense)",
    .features = QN_F_BIAS_OPTIONAL,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .others = { &qn_ff_experts },
    .experts = &experts,
    .layers = qn_layers_experts,
    .act = QN_UNARY_SILU,
    .keys = qn_granite_keys,
    .n_keys = QN_GRANITE_KEYS,
    .adjust = qn_granite_adjust,
};

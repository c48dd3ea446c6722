#include "models/minicpm.h"

#include <math.h>

const qn_key_row qn_minicpm_keys[QN_MINICPM_KEYS] = {
    { "logit_scale", QN_KEY_FLOAT, offsetof(qn_net, logit_scale), false, 0, 0 },
    { "residual_scale", QN_KEY_FLOAT, offsetof(qn_net, residual_scale), false, 0, 0 },
    { "embedding_scale", QN_KEY_FLOAT, offsetof(qn_net, embed_scale), false, 0, 0 },
};

/* Hu et al. 2024: widths of the model that the scales were found with. Files of before they had keys have those of the paper. */
qn_status qn_minicpm_adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    float divisor = (float)net->n_embd / 256;
    net->embed_scale = 12;
    net->residual_scale = 1.4f / sqrtf((float)net->n_layer);
    QN_TRY(qn_net_read_f32(net, file, "embedding_scale", &net->embed_scale, err));
    QN_TRY(qn_net_read_f32(net, file, "residual_scale", &net->residual_scale, err));
    QN_TRY(qn_net_read_f32(net, file, "logit_scale", &divisor, err));
    if (!(divisor > 0)) return qn_fail(err, QN_ERR_FORMAT, "%s.logit_scale is %g; it must be above 0", net->arch->name, (double)divisor);
    net->logit_scale = 1 / divisor;
    return QN_OK;
}

static const qn_expert_rules experts = { .gate = QN_GATE_SOFTMAX, .normalised = true };

extern const qn_arch qn_arch_minicpm;
const qn_arch qn_arch_minicpm = {
    .name = "minicpm",
    .covers = "MiniCPM 1 and 2, MiniCPM-MoE 8x2B",
    .features = QN_F_BIAS_OPTIONAL,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .others = { &qn_ff_experts },
    .experts = &experts,
    .layers = qn_layers_experts,
    .act = QN_UNARY_SILU,
    .keys = qn_minicpm_keys,
    .n_keys = QN_MINICPM_KEYS,
    .adjust = qn_minicpm_adjust,
};

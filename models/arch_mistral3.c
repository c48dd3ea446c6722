#include "models/model.h"

#include <math.h>

static const qn_key_row keys[] = {
    { "attention.temperature_scale", QN_KEY_FLOAT, offsetof(qn_net, temper.scale), false, 0, 0 },
    { "attention.scale", QN_KEY_FLOAT, offsetof(qn_net, attn_scale), false, 0, 0 },
    { "rope.scaling.yarn_log_multiplier", QN_KEY_HOOK, 0, false, 0, 0 },
};

/* Queries grow with the logarithm of how often the position has passed the original context. YaRN's magnitude is over one with a multiplier: with that of
 * public models, 1, nothing is left of it. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    float multiplier = 0;
    qn_rope *r = &net->rope[0];
    net->temper.span = r->n_ctx_orig;
    QN_TRY(qn_net_read_f32(net, file, "rope.scaling.yarn_log_multiplier", &multiplier, err));
    if (!(multiplier >= 0 && multiplier < 1e6f))
        return qn_fail(err, QN_ERR_FORMAT, "mistral3.rope.scaling.yarn_log_multiplier is %g; it must be at least 0", (double)multiplier);
    if (r->ext_factor != 0 && r->freq_scale < 1) r->attn_factor /= 1 + 0.1 * (double)multiplier * log(1 / r->freq_scale);
    return QN_OK;
}

static const qn_expert_rules experts = { .gate = QN_GATE_SOFTMAX, .normalised = true };

extern const qn_arch qn_arch_mistral3;
const qn_arch qn_arch_mistral3 = {
    .name = "mistral3",
    .covers = "Ministral 3, Mistral Small and Medium 3",
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

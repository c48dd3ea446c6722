#include "models/model.h"

#include <math.h>

static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    QN_TRY(qn_layers_latent(net, file, err));
    return qn_layers_experts(net, file, err);
}

/* YaRN with a scale of its own: what the angles' magnitude would do to the part of the scores that rotates, the scale of attention does to all of
 * it (DeepSeek-AI 2024; Peng et al. 2023). The file has a tenth of the paper's multiplier. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    float log_multiplier = 0;
    qn_rope *r = &net->rope[0];
    QN_TRY(qn_adjust_latent(net, file, err));
    QN_TRY(qn_net_read_f32(net, file, "rope.scaling.yarn_log_multiplier", &log_multiplier, err));
    const double log_factor = log(1 / r->freq_scale), full = 1 + 0.1 * log_factor;
    const double base = log_multiplier != 0 && r->ext_factor != 0 ? 1 : full;
    const double magnitude = base * (1 + (double)log_multiplier * log_factor);
    if (log_multiplier != 0 && r->ext_factor != 0) r->attn_factor /= full;
    net->attn_scale = (float)(magnitude * magnitude / sqrt((double)net->layer[0].latent.n_key));
    return QN_OK;
}

static const qn_key_row keys[] = { { "rope.scaling.yarn_log_multiplier", QN_KEY_HOOK, 0, false, 0, 0 } };
static const qn_expert_rules experts = {
    .gate = QN_GATE_SOFTMAX,
    .heeds = QN_HEED_GATE | QN_HEED_NORM | QN_HEED_SCALE,
    .shared = QN_SHARED_BY_COUNT,
};

extern const qn_arch qn_arch_deepseek2;
const qn_arch qn_arch_deepseek2 = {
    .name = "deepseek2",
    .covers = "DeepSeek V2, V2 Lite, V3 and R1, Moonlight, Kimi K2, GigaChat 3, GLM 4.7 Flash",
    .mixer = &qn_mix_latent,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .act = QN_UNARY_SILU,
    .experts = &experts,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .layers = layers,
    .adjust = adjust,
};

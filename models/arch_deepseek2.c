#include "models/deepseek.h"

#include <math.h>

qn_status qn_deepseek_layers(qn_net *net, const qn_file *file, qn_err *err)
{
    QN_TRY(qn_layers_latent(net, file, err));
    return qn_layers_experts(net, file, err);
}

/* YaRN with a scale of its own: what the angles' magnitude would do to the part of the scores that rotates, the scale of attention does to all of
 * it (DeepSeek-AI 2024; Peng et al. 2023). The file has a tenth of the paper's multiplier. */
qn_status qn_deepseek_adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    float log_multiplier = 0;
    qn_rope *r = &net->rope[0];
    QN_TRY(qn_adjust_latent(net, file, err));
    QN_TRY(qn_net_read_f32(net, file, "rope.scaling.yarn_log_multiplier", &log_multiplier, err));
    if (!net->temper.span) net->temper.span = r->n_ctx_orig;
    if (!net->experts.gate && (net->n_layer == 47 || net->n_layer == 48) && net->n_vocab == 154880)
        net->experts.gate = QN_GATE_SIGMOID; /* GLM 4.7 Flash: its first files do not say so */
    const double log_factor = log(1 / r->freq_scale), full = 1 + 0.1 * log_factor;
    const double base = log_multiplier != 0 && r->ext_factor != 0 ? 1 : full;
    const double magnitude = base * (1 + (double)log_multiplier * log_factor);
    if (log_multiplier != 0 && r->ext_factor != 0) r->attn_factor /= full;
    net->attn_scale = (float)(magnitude * magnitude / sqrt((double)net->layer[0].latent.n_key));
    return QN_OK;
}

const qn_key_row qn_deepseek_keys[QN_DEEPSEEK_KEYS] = {
    { "rope.scaling.yarn_log_multiplier", QN_KEY_HOOK, 0, false, 0, 0 },
    { "attention.temperature_scale", QN_KEY_FLOAT, offsetof(qn_net, temper.scale), false, 0, 0 },
    { "attention.temperature_length", QN_KEY_NET, offsetof(qn_net, temper.span), false, 0, INT32_MAX },
};
const qn_expert_rules qn_deepseek_experts = {
    .gate = QN_GATE_SOFTMAX,
    .heeds = QN_HEED_GATE | QN_HEED_NORM | QN_HEED_SCALE,
    .shared = QN_SHARED_BY_COUNT,
};

extern const qn_arch qn_arch_deepseek2;
const qn_arch qn_arch_deepseek2 = {
    .name = "deepseek2",
    .covers = "DeepSeek V2, V2 Lite, V3 and R1, Moonlight, Kimi K2, GigaChat 3, GLM 4.7 Flash, Mistral Large 3",
    .mixer = &qn_mix_latent,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense, &qn_mix_latent_whole },
    .act = QN_UNARY_SILU,
    .experts = &qn_deepseek_experts,
    .keys = qn_deepseek_keys,
    .n_keys = QN_DEEPSEEK_KEYS,
    .layers = qn_deepseek_layers,
    .adjust = qn_deepseek_adjust,
};

#include "models/granite.h"

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
    .keys = qn_granite_keys,
    .n_keys = QN_GRANITE_SCALES,
    .layers = qn_layers_experts,
    .adjust = qn_granite_adjust_scales,
};

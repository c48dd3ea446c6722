#include "models/model.h"

static const qn_expert_rules experts = { .gate = QN_GATE_SOFTMAX, .normalised = true, .divides_ff = true };

extern const qn_arch qn_arch_mellum;
const qn_arch qn_arch_mellum = {
    .name = "mellum",
    .covers = "Mellum 2",
    .features = QN_F_QK_NORM | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .experts = &experts,
    .act = QN_UNARY_SILU,
    .layers = qn_layers_experts,
    .adjust = qn_adjust_windows_unscaled,
};

#include "models/model.h"

static const qn_expert_rules experts = { .gate = QN_GATE_SOFTMAX };

extern const qn_arch qn_arch_olmoe;
const qn_arch qn_arch_olmoe = {
    .name = "olmoe",
    .covers = "OLMoE 1B 7B",
    .features = QN_F_QK_NORM_WIDE | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .act = QN_UNARY_SILU,
    .experts = &experts,
    .layers = qn_layers_experts,
};

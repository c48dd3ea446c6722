#include "models/model.h"

static const qn_expert_rules experts = { .gate = QN_GATE_SOFTMAX, .normalised = true };

extern const qn_arch qn_arch_ernie4_5_moe;
const qn_arch qn_arch_ernie4_5_moe = {
    .name = "ernie4_5-moe",
    .covers = "ERNIE 4.5 21B A3B and 300B A47B",
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .experts = &experts,
    .act = QN_UNARY_SILU,
    .layers = qn_layers_experts,
};

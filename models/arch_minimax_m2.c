#include "models/model.h"

static const qn_expert_rules experts = { .gate = QN_GATE_SIGMOID, .normalised = true, .heeds = QN_HEED_GATE, .ff_as_dense = true };

extern const qn_arch qn_arch_minimax_m2;
const qn_arch qn_arch_minimax_m2 = {
    .name = "minimax-m2",
    .covers = "MiniMax M2",
    .features = QN_F_QK_NORM_WIDE | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .experts = &experts,
    .act = QN_UNARY_SILU,
    .layers = qn_layers_experts,
};

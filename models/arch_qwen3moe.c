#include "models/model.h"

static const qn_expert_rules experts = { .gate = QN_GATE_SOFTMAX, .normalised = true, .divides_ff = true };

extern const qn_arch qn_arch_qwen3moe;
const qn_arch qn_arch_qwen3moe = {
    .name = "qwen3moe",
    .covers = "Qwen 3 30B A3B and 235B A22B, Qwen 3 Coder",
    .features = QN_F_QK_NORM | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .act = QN_UNARY_SILU,
    .experts = &experts,
    .layers = qn_layers_experts,
};

#include "models/model.h"

static const qn_expert_rules experts = { .gate = QN_GATE_SOFTMAX, .divides_ff = true, .shared = QN_SHARED_AS_DENSE };

extern const qn_arch qn_arch_qwen2moe;
const qn_arch qn_arch_qwen2moe = {
    .name = "qwen2moe",
    .covers = "Qwen 1.5 MoE A2.7B, Qwen 2 57B A14B",
    .features = QN_F_QKV_BIAS | QN_F_ROPE_NEOX | QN_F_SHARED_GATE,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .act = QN_UNARY_SILU,
    .experts = &experts,
    .layers = qn_layers_experts,
};

#include "models/model.h"

static const qn_expert_rules experts = {
    .gate = QN_GATE_SOFTMAX,
    .heeds = QN_HEED_SCALE,
    .shared = QN_SHARED_BY_COUNT,
};

extern const qn_arch qn_arch_deepseek;
const qn_arch qn_arch_deepseek = {
    .name = "deepseek",
    .covers = "DeepSeek MoE 16B (first generation)",
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .act = QN_UNARY_SILU,
    .experts = &experts,
    .layers = qn_layers_experts,
};

#include "models/model.h"

static const qn_expert_rules experts = { .gate = QN_GATE_SOFTMAX, .normalised = true, .ff_as_dense = true, .shared = QN_SHARED_AS_DENSE };

extern const qn_arch qn_arch_hunyuan_moe;
const qn_arch qn_arch_hunyuan_moe = {
    .name = "hunyuan-moe",
    .covers = "Hunyuan A13B",
    .features = QN_F_QK_NORM | QN_F_QK_NORM_LATE | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .experts = &experts,
    .act = QN_UNARY_SILU,
    .layers = qn_layers_experts,
};

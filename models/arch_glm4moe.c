#include "models/model.h"

static const qn_expert_rules experts = {
    .gate = QN_GATE_SIGMOID,
    .heeds = QN_HEED_GATE | QN_HEED_NORM | QN_HEED_SCALE,
    .divides_ff = true,
    .shared = QN_SHARED_BY_COUNT,
};

extern const qn_arch qn_arch_glm4moe;
const qn_arch qn_arch_glm4moe = {
    .name = "glm4moe",
    .covers = "GLM 4.5, 4.5 Air and 4.6",
    .features = QN_F_QK_NORM | QN_F_QK_NORM_OPTIONAL | QN_F_FF_NORM_NAMED_POST | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .experts = &experts,
    .act = QN_UNARY_SILU,
    .layers = qn_layers_experts,
};

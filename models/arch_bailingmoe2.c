#include "models/model.h"

static const qn_expert_rules experts = {
    .gate = QN_GATE_SIGMOID,
    .heeds = QN_HEED_GATE | QN_HEED_NORM | QN_HEED_SCALE,
    .shared = QN_SHARED_BY_COUNT | QN_SHARED_EACH,
};

extern const qn_arch qn_arch_bailingmoe2;
const qn_arch qn_arch_bailingmoe2 = {
    .name = "bailingmoe2",
    .covers = "Ling 2 and Ring 2, mini and flash",
    .features = QN_F_QKV_FUSED | QN_F_QK_NORM | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .experts = &experts,
    .act = QN_UNARY_SILU,
    .layers = qn_layers_experts,
};

#include "models/model.h"

static const qn_expert_rules experts = {
    .gate = QN_GATE_SIGMOID,
    .heeds = QN_HEED_GATE | QN_HEED_NORM | QN_HEED_SCALE,
    .divides_ff = true,
    .shared = QN_SHARED_ONE,
};

extern const qn_arch qn_arch_hy_v3;
const qn_arch qn_arch_hy_v3 = {
    .name = "hy_v3",
    .covers = "Hunyuan 3 (Hy3)",
    .features = QN_F_QK_NORM | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .experts = &experts,
    .act = QN_UNARY_SILU,
    .layers = qn_layers_experts_by_tensor,
};

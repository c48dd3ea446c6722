#include "models/model.h"

extern const qn_arch qn_arch_orion;
const qn_arch qn_arch_orion = {
    .name = "orion",
    .covers = "Orion 14B",
    .features = QN_F_LAYER_NORM | QN_F_NORM_BIAS | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
};

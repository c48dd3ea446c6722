#include "models/model.h"

extern const qn_arch qn_arch_openelm;
const qn_arch qn_arch_openelm = {
    .name = "openelm",
    .covers = "OpenELM 270M to 3B",
    .features = QN_F_QKV_FUSED | QN_F_QK_NORM | QN_F_TIED | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
};

#include "models/model.h"

extern const qn_arch qn_arch_phi2;
const qn_arch qn_arch_phi2 = {
    .name = "phi2",
    .covers = "Phi 1, 1.5, 2",
    .features = QN_F_QKV_BIAS | QN_F_OUT_BIAS | QN_F_FF_BIAS | QN_F_NO_GATE | QN_F_LAYER_NORM | QN_F_NORM_BIAS | QN_F_PARALLEL | QN_F_ONE_NORM |
                QN_F_ROPE_NEOX | QN_F_HEAD_BIAS,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_GELU,
};

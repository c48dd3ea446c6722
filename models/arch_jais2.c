#include "models/model.h"

extern const qn_arch qn_arch_jais2;
const qn_arch qn_arch_jais2 = {
    .name = "jais2",
    .covers = "Jais 2 8B and 70B",
    .features = QN_F_QKV_BIAS | QN_F_OUT_BIAS | QN_F_FF_BIAS | QN_F_NO_GATE | QN_F_LAYER_NORM | QN_F_NORM_BIAS | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_RELU_SQR,
};

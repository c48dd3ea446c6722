#include "models/model.h"

extern const qn_arch qn_arch_gptj;
const qn_arch qn_arch_gptj = {
    .name = "gptj",
    .covers = "GPT-J 6B, GPT-JT",
    .features = QN_F_LAYER_NORM | QN_F_NORM_BIAS | QN_F_PARALLEL | QN_F_ONE_NORM | QN_F_NO_GATE | QN_F_FF_BIAS | QN_F_HEAD_BIAS,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_GELU,
};

#include "models/model.h"

extern const qn_arch qn_arch_nemotron;
const qn_arch qn_arch_nemotron = {
    .name = "nemotron",
    .covers = "Nemotron 3, Nemotron 4, Minitron",
    .features = QN_F_LAYER_NORM | QN_F_NORM_BIAS | QN_F_NO_GATE | QN_F_BIAS_OPTIONAL | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_RELU_SQR,
};

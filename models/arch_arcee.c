#include "models/model.h"

extern const qn_arch qn_arch_arcee;
const qn_arch qn_arch_arcee = {
    .name = "arcee",
    .covers = "AFM 4.5B",
    .features = QN_F_NO_GATE | QN_F_BIAS_OPTIONAL,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_RELU_SQR,
};

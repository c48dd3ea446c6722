#include "models/model.h"

extern const qn_arch qn_arch_ernie4_5;
const qn_arch qn_arch_ernie4_5 = {
    .name = "ernie4_5",
    .covers = "ERNIE 4.5 (dense)",
    .features = QN_F_BIAS_OPTIONAL,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
};

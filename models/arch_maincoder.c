#include "models/model.h"

extern const qn_arch qn_arch_maincoder;
const qn_arch qn_arch_maincoder = {
    .name = "maincoder",
    .covers = "Maincoder 1B",
    .features = QN_F_QK_NORM | QN_F_QK_NORM_LATE,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
};

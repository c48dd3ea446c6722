#include "models/model.h"

extern const qn_arch qn_arch_olmo2;
const qn_arch qn_arch_olmo2 = {
    .name = "olmo2",
    .covers = "OLMo 2, OLMo 3",
    .features = QN_F_NO_PRE_NORM | QN_F_POST_NORM | QN_F_QK_NORM_WIDE | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .adjust = qn_adjust_windows_unscaled,
};

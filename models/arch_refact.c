#include "models/model.h"

extern const qn_arch qn_arch_refact;
const qn_arch qn_arch_refact = {
    .name = "refact",
    .covers = "Refact 1.6B",
    .features = QN_F_NO_ROPE | QN_F_ALIBI,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
};

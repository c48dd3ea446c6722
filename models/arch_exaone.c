#include "models/model.h"

extern const qn_arch qn_arch_exaone;
const qn_arch qn_arch_exaone = {
    .name = "exaone",
    .covers = "EXAONE 3, 3.5",
    .features = QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
};

#include "models/model.h"

extern const qn_arch qn_arch_bitnet;
const qn_arch qn_arch_bitnet = {
    .name = "bitnet",
    .covers = "BitNet b1.58 700M to 3B",
    .features = QN_F_SUB_NORM | QN_F_TIED | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
};

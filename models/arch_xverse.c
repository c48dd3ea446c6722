#include "models/model.h"

extern const qn_arch qn_arch_xverse;
const qn_arch qn_arch_xverse = {
    .name = "xverse",
    .covers = "XVERSE",
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
};

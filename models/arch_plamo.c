#include "models/model.h"

extern const qn_arch qn_arch_plamo;
const qn_arch qn_arch_plamo = {
    .name = "plamo",
    .covers = "PLaMo 13B",
    .features = QN_F_PARALLEL | QN_F_ONE_NORM | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
};

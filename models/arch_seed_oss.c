#include "models/model.h"

extern const qn_arch qn_arch_seed_oss;
const qn_arch qn_arch_seed_oss = {
    .name = "seed_oss",
    .covers = "Seed-OSS 36B",
    .features = QN_F_FF_NORM_NAMED_POST | QN_F_BIAS_OPTIONAL | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
};

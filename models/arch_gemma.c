#include "models/model.h"

extern const qn_arch qn_arch_gemma;
const qn_arch qn_arch_gemma = {
    .name = "gemma",
    .covers = "Gemma 1, CodeGemma",
    .features = QN_F_ROPE_NEOX | QN_F_EMBED_SQRT | QN_F_TIED,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_GELU,
};

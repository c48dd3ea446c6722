#include "models/model.h"

extern const qn_arch qn_arch_internlm2;
const qn_arch qn_arch_internlm2 = {
    .name = "internlm2",
    .covers = "InternLM 2, 2.5, 3",
    .features = 0,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
};

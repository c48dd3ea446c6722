#include "models/model.h"

extern const qn_arch qn_arch_qwen3;
const qn_arch qn_arch_qwen3 = {
    .name = "qwen3",
    .covers = "Qwen 3 (dense)",
    .features = QN_F_QK_NORM | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .cls_softmax = true,
};

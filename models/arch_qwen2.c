#include "models/model.h"

extern const qn_arch qn_arch_qwen2;
const qn_arch qn_arch_qwen2 = {
    .name = "qwen2",
    .covers = "Qwen 2, Qwen 2.5, QwQ, DeepSeek-R1-Distill-Qwen",
    .features = QN_F_QKV_BIAS | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
};

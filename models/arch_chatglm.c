#include "models/model.h"

extern const qn_arch qn_arch_chatglm;
const qn_arch qn_arch_chatglm = {
    .name = "chatglm",
    .covers = "ChatGLM 3, GLM 4 9B (first generation)",
    .features = QN_F_QKV_FUSED | QN_F_GATE_UP_FUSED,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
};

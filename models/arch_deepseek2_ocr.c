#include "models/model.h"

static const qn_expert_rules experts = {
    .gate = QN_GATE_SOFTMAX,
    .heeds = QN_HEED_GATE | QN_HEED_NORM | QN_HEED_SCALE,
    .shared = QN_SHARED_BY_COUNT,
};

extern const qn_arch qn_arch_deepseek2_ocr;
const qn_arch qn_arch_deepseek2_ocr = {
    .name = "deepseek2-ocr",
    .covers = "DeepSeek OCR (text)",
    .features = QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .experts = &experts,
    .act = QN_UNARY_SILU,
    .layers = qn_layers_experts,
};

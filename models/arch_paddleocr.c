#include "models/model.h"

extern const qn_arch qn_arch_paddleocr;
const qn_arch qn_arch_paddleocr = {
    .name = "paddleocr",
    .covers = "PaddleOCR VL (text)",
    .features = QN_F_BIAS_OPTIONAL | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .adjust = qn_net_read_sections,
};

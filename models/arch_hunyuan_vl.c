#include "models/hunyuan.h"

extern const qn_arch qn_arch_hunyuan_vl;
const qn_arch qn_arch_hunyuan_vl = {
    .name = "hunyuan_vl",
    .covers = "HunyuanOCR, Hunyuan VL (text)",
    .features = QN_F_QK_NORM | QN_F_QK_NORM_LATE | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .keys = qn_hunyuan_keys,
    .n_keys = QN_HUNYUAN_KEYS,
    .adjust = qn_hunyuan_adjust,
};

#include "models/model.h"

extern const qn_arch qn_arch_bloom;
const qn_arch qn_arch_bloom = {
    .name = "bloom",
    .covers = "BLOOM, BLOOMZ",
    .features = QN_F_QKV_BIAS | QN_F_OUT_BIAS | QN_F_FF_BIAS | QN_F_QKV_FUSED | QN_F_NO_GATE | QN_F_LAYER_NORM | QN_F_NORM_BIAS | QN_F_EMBED_NORM |
                QN_F_NO_ROPE | QN_F_ALIBI,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_GELU,
};

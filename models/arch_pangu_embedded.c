#include "models/model.h"

extern const qn_arch qn_arch_pangu_embedded;
const qn_arch qn_arch_pangu_embedded = {
    .name = "pangu-embedded",
    .covers = "openPangu Embedded 1B, 7B",
    .features = QN_F_OUT_BIAS | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
};

#include "models/model.h"

static const qn_key_row keys[] = {
    { "attention.clamp_kqv", QN_KEY_FLOAT, offsetof(qn_net, kqv_clamp), false, 0, 0 },
};

extern const qn_arch qn_arch_olmo;
const qn_arch qn_arch_olmo = {
    .name = "olmo",
    .covers = "OLMo 1",
    .features = QN_F_LAYER_NORM | QN_F_NORM_PLAIN,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
};

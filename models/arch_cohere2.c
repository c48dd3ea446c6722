#include "models/model.h"

static const qn_key_row keys[] = { { "logit_scale", QN_KEY_FLOAT, offsetof(qn_net, logit_scale), true, 0, 0 } };

extern const qn_arch qn_arch_cohere2;
const qn_arch qn_arch_cohere2 = {
    .name = "cohere2",
    .covers = "Command R7B, Command A, Aya Expanse (cohere2)",
    .features = QN_F_LAYER_NORM | QN_F_PARALLEL | QN_F_ONE_NORM | QN_F_TIED,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .adjust = qn_adjust_every_fourth_sees_all,
};

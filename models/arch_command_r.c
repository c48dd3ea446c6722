#include "models/model.h"

static const qn_key_row keys[] = { { "logit_scale", QN_KEY_FLOAT, offsetof(qn_net, logit_scale), false, 0, 0 } };

extern const qn_arch qn_arch_command_r;
const qn_arch qn_arch_command_r = {
    .name = "command-r",
    .covers = "Command R, Command R+, Aya 23",
    .features = QN_F_LAYER_NORM | QN_F_PARALLEL | QN_F_ONE_NORM | QN_F_QK_NORM_HEADS | QN_F_QK_NORM_OPTIONAL | QN_F_TIED,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
};

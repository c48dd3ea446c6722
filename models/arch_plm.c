#include "models/model.h"

extern const qn_arch qn_arch_plm;
const qn_arch qn_arch_plm = {
    .name = "plm",
    .covers = "PLM 1.8B",
    .features = QN_F_NO_GATE | QN_F_TIED,
    .mixer = &qn_mix_latent_whole,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_RELU_SQR,
    .layers = qn_layers_latent,
    .adjust = qn_adjust_latent,
};

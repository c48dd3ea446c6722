#include "models/minicpm.h"

static const qn_tensor_row tensors[] = {
    { "rope_factors_long.weight", QN_NET_V(rope_factors_long), .rows = { qn_dim_half_rot } },
    { "rope_factors_short.weight", QN_NET_V(rope_factors), .rows = { qn_dim_half_rot } },
};

static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    QN_TRY(qn_minicpm_adjust(net, file, err));
    return qn_adjust_latent(net, file, err);
}

extern const qn_arch qn_arch_minicpm3;
const qn_arch qn_arch_minicpm3 = {
    .name = "minicpm3",
    .covers = "MiniCPM 3 4B",
    .features = QN_F_ROPE_NEOX,
    .mixer = &qn_mix_latent_whole,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .keys = qn_minicpm_keys,
    .n_keys = QN_MINICPM_KEYS,
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .layers = qn_layers_latent,
    .adjust = adjust,
};

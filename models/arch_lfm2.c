#include "models/model.h"

static const qn_key_row keys[] = { { "attention.head_count_kv", QN_KEY_HOOK, 0, false, 0, 0 } };
static const qn_tensor_row tensors[] = { { "token_embd_norm.weight", QN_NET_V(out_norm), .rows = { qn_dim_embd }, .required = QN_ALWAYS } };

static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    return qn_layers_without_kv(net, file, &qn_mix_shortconv, err);
}

extern const qn_arch qn_arch_lfm2;
const qn_arch qn_arch_lfm2 = {
    .name = "lfm2",
    .covers = "LFM2 350M to 2.6B",
    .features = QN_F_QK_NORM | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .others = { &qn_mix_shortconv },
    .act = QN_UNARY_SILU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .layers = layers,
};

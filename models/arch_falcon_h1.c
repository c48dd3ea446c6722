#include "models/model.h"

static const qn_tensor_row layer_tensors[] = { { "blk.%d.ffn_norm", QN_LAYER_V(ffn_norm), .rows = { qn_dim_embd }, .required = QN_ALWAYS } };
static const qn_key_row keys[] = { { "attention.scale", QN_KEY_FLOAT, offsetof(qn_net, attn_scale), false, 0, 0 } };

/* Attention and state spaces side by side in every block (TII 2025). */
static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    (void)file;
    (void)err;
    for (int32_t i = 0; i < net->n_layer; i++) net->layer[i].beside = &qn_mix_ssm;
    return QN_OK;
}

extern const qn_arch qn_arch_falcon_h1;
const qn_arch qn_arch_falcon_h1 = {
    .name = "falcon-h1",
    .covers = "Falcon-H1 0.5B to 34B",
    .features = QN_F_ROPE_NEOX | QN_F_BIAS_OPTIONAL,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .others = { &qn_mix_ssm },
    .act = QN_UNARY_SILU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .layer_tensors = layer_tensors,
    .n_layer_tensors = sizeof layer_tensors / sizeof *layer_tensors,
    .layers = layers,
};

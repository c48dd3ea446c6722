#include "models/model.h"

static const qn_key_row keys[] = {
    { "attention.head_count_kv", QN_KEY_HOOK, 0, false, 0, 0 },
    { "feed_forward_length", QN_KEY_HOOK, 0, false, 0, 0 },
    { "attention.scale", QN_KEY_FLOAT, offsetof(qn_net, attn_scale), false, 0, 0 },
};

static int64_t dim_norm(const qn_net *net, const qn_layer *l) { return l->mixer ? QN_NO_TENSOR : net->n_embd; }
static const qn_tensor_row layer_tensors[] = {
    { "blk.%d.attn_norm.weight", QN_LAYER_V(ffn_norm), .rows = { dim_norm }, .required = QN_ALWAYS },
};

static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    return qn_layers_of_halves(net, file, &qn_mix_ssm, &qn_ff_dense, err);
}

extern const qn_arch qn_arch_nemotron_h;
const qn_arch qn_arch_nemotron_h = {
    .name = "nemotron_h",
    .covers = "Nemotron-H, Nemotron Nano 9B and 12B v2",
    .features = QN_F_NO_ROPE | QN_F_NO_GATE | QN_F_BIAS_OPTIONAL,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .others = { &qn_mix_ssm },
    .act = QN_UNARY_RELU_SQR,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .layer_tensors = layer_tensors,
    .n_layer_tensors = sizeof layer_tensors / sizeof *layer_tensors,
    .layers = layers,
};

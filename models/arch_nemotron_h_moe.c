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
    return qn_layers_of_halves(net, file, &qn_mix_ssm, &qn_ff_experts, err);
}

static const qn_expert_rules experts = { .gate = QN_GATE_SIGMOID, .heeds = QN_HEED_NORM | QN_HEED_SCALE, .divides_ff = true };

extern const qn_arch qn_arch_nemotron_h_moe;
const qn_arch qn_arch_nemotron_h_moe = {
    .name = "nemotron_h_moe",
    .covers = "Nemotron 3 Nano 30B A3B",
    .features = QN_F_NO_ROPE | QN_F_NO_GATE | QN_F_BIAS_OPTIONAL,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_mix_ssm },
    .experts = &experts,
    .act = QN_UNARY_RELU_SQR,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .layer_tensors = layer_tensors,
    .n_layer_tensors = sizeof layer_tensors / sizeof *layer_tensors,
    .layers = layers,
};

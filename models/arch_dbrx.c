#include "models/model.h"

static const qn_key_row keys[] = { { "attention.clamp_kqv", QN_KEY_FLOAT, offsetof(qn_net, kqv_clamp), true, 0, 0 } };

static const qn_tensor_row layer_tensors[] = {
    { "blk.%d.attn_output_norm.weight", QN_LAYER_V(ffn_norm), .rows = { qn_dim_embd }, .required = QN_ALWAYS },
};

static const qn_expert_rules experts = { .gate = QN_GATE_SOFTMAX, .normalised = true, .ff_as_dense = true };

extern const qn_arch qn_arch_dbrx;
const qn_arch qn_arch_dbrx = {
    .name = "dbrx",
    .covers = "DBRX",
    .features = QN_F_LAYER_NORM | QN_F_QKV_FUSED | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .experts = &experts,
    .act = QN_UNARY_SILU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .layer_tensors = layer_tensors,
    .n_layer_tensors = sizeof layer_tensors / sizeof *layer_tensors,
    .layers = qn_layers_experts,
};

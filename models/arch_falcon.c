#include "models/model.h"

/* The larger models have a second norm, and it is attention that reads it. */
static const qn_tensor_row layer_tensors[] = {
    { "blk.%d.attn_norm_2.weight", QN_LAYER_V(ffn_norm), .rows = { qn_dim_embd } },
    { "blk.%d.attn_norm_2.bias", QN_LAYER_V(ffn_norm_b), .rows = { qn_dim_embd } },
};

extern const qn_arch qn_arch_falcon;
const qn_arch qn_arch_falcon = {
    .name = "falcon",
    .covers = "Falcon 7B, 40B, 180B",
    .features = QN_F_QKV_FUSED | QN_F_NO_GATE | QN_F_LAYER_NORM | QN_F_NORM_BIAS | QN_F_PARALLEL | QN_F_ONE_NORM | QN_F_NORMS_SWAPPED | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_GELU,
    .layer_tensors = layer_tensors,
    .n_layer_tensors = sizeof layer_tensors / sizeof *layer_tensors,
};

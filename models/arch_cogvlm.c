#include "models/model.h"

static int64_t dim_qkv(const qn_net *net, const qn_layer *l) { return qn_dim_q(net, l) + qn_dim_k(net, l) + qn_dim_v(net, l); }

/* What images take instead (Wang et al. 2023): a text needs none of it. */
#define OF_IMAGES(name, n_cols, n_rows) { "blk.%d." name ".weight", QN_LAYER_W(wq), .cols = n_cols, .rows = { n_rows }, .unread = QN_ALWAYS }
static const qn_tensor_row tensors[] = {
    OF_IMAGES("vis_attn_qkv", qn_dim_embd, dim_qkv),
    OF_IMAGES("vis_attn_output", qn_dim_o, qn_dim_embd),
    OF_IMAGES("vis_gate", qn_dim_embd, qn_dim_ff),
    OF_IMAGES("vis_up", qn_dim_embd, qn_dim_ff),
    OF_IMAGES("vis_down", qn_dim_ff, qn_dim_embd),
};

extern const qn_arch qn_arch_cogvlm;
const qn_arch qn_arch_cogvlm = {
    .name = "cogvlm",
    .covers = "CogVLM (text)",
    .features = QN_F_QKV_FUSED | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .layer_tensors = tensors,
    .n_layer_tensors = sizeof tensors / sizeof *tensors,
};

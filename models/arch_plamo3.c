#include "models/model.h"

/* Post-norms without the ".weight" behind their names. */
static const qn_tensor_row tensors[] = {
    { "blk.%d.post_attention_norm", QN_LAYER_V(attn_post_norm), .rows = { qn_dim_embd }, .required = QN_ALWAYS },
    { "blk.%d.post_ffw_norm", QN_LAYER_V(ffn_post_norm), .rows = { qn_dim_embd }, .required = QN_ALWAYS },
};

/* Where the file has a sliding window, all but every eighth layer see it alone, with angles of another base. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    enum { PERIOD = 8 };
    if (!net->layer[0].window) return QN_OK;
    QN_TRY(qn_net_read_windows(net, file, PERIOD, false, err));
    return qn_net_windowed_rope(net, file, 10000, err);
}

extern const qn_arch qn_arch_plamo3;
const qn_arch qn_arch_plamo3 = {
    .name = "plamo3",
    .covers = "PLaMo 3 NICT 2B to 31B",
    .features = QN_F_QKV_FUSED | QN_F_GATE_UP_FUSED | QN_F_QK_NORM | QN_F_POST_NORM | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .layer_tensors = tensors,
    .n_layer_tensors = sizeof tensors / sizeof *tensors,
    .adjust = adjust,
};

#include "models/model.h"

/* Long and short factors of the frequencies (Ding et al. 2024, "LongRoPE"): which is used depends on the context. */
static const qn_tensor_row tensors[] = {
    { "rope_factors_long.weight", QN_NET_V(rope_factors_long), .rows = { qn_dim_half_rot } },
    { "rope_factors_short.weight", QN_NET_V(rope_factors), .rows = { qn_dim_half_rot } },
};

/* Files name a sliding window that converters filled in for models which do not have it: all positions are seen, as in other runtimes. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    (void)file, (void)err;
    for (int32_t i = 0; i < net->n_layer; i++) net->layer[i].window = 0;
    return QN_OK;
}

extern const qn_arch qn_arch_phi3;
const qn_arch qn_arch_phi3 = {
    .name = "phi3",
    .covers = "Phi 3, 3.5, 4",
    .features = QN_F_QKV_FUSED | QN_F_GATE_UP_FUSED | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .adjust = adjust,
};

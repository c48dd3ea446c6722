#include "models/model.h"

/* Long and short factors, as phi3 has them. */
static const qn_tensor_row tensors[] = {
    { "rope_factors_long.weight", QN_NET_V(rope_factors_long), .rows = { qn_dim_half_rot } },
    { "rope_factors_short.weight", QN_NET_V(rope_factors), .rows = { qn_dim_half_rot } },
};

/* A window that no layer has, as in phi3. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    (void)file, (void)err;
    for (int32_t i = 0; i < net->n_layer; i++) net->layer[i].window = 0;
    return QN_OK;
}

static const qn_expert_rules experts = { .gate = QN_GATE_SOFTMAX, .normalised = true, .heeds = QN_HEED_SCALE, .ff_as_dense = true };

extern const qn_arch qn_arch_phimoe;
const qn_arch qn_arch_phimoe = {
    .name = "phimoe",
    .covers = "Phi 3.5 MoE, Phi mini and tiny MoE",
    .features = QN_F_NORM_BIAS | QN_F_OUT_BIAS | QN_F_HEAD_BIAS | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .experts = &experts,
    .act = QN_UNARY_SILU,
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .layers = qn_layers_experts,
    .adjust = adjust,
};

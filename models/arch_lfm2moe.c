#include "models/model.h"

static const qn_key_row keys[] = { { "attention.head_count_kv", QN_KEY_HOOK, 0, false, 0, 0 } };
static const qn_tensor_row tensors[] = { { "token_embd_norm.weight", QN_NET_V(out_norm), .rows = { qn_dim_embd }, .required = QN_ALWAYS } };

static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    QN_TRY(qn_layers_without_kv(net, file, &qn_mix_shortconv, err));
    return qn_layers_experts(net, file, err);
}

static const qn_expert_rules experts = { .gate = QN_GATE_SIGMOID, .normalised = true, .heeds = QN_HEED_GATE | QN_HEED_SCALE };

extern const qn_arch qn_arch_lfm2moe;
const qn_arch qn_arch_lfm2moe = {
    .name = "lfm2moe",
    .covers = "LFM2 8B A1B, 24B A2B",
    .features = QN_F_QK_NORM | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .others = { &qn_mix_shortconv, &qn_ff_experts },
    .experts = &experts,
    .act = QN_UNARY_SILU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .layers = layers,
};

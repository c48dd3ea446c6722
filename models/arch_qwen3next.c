#include "models/model.h"

static const qn_key_row keys[] = {
    { "full_attention_interval", QN_KEY_HOOK, 0, false, 0, 0 },
    { "attention.recurrent_layers", QN_KEY_HOOK, 0, false, 0, 0 },
};

static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    for (int32_t i = 0; i < net->n_layer; i++) net->layer[i].q_gated = net->layer[i].recur.by_key = true;
    QN_TRY(qn_layers_interleaved(net, file, &qn_mix_delta, err));
    return qn_layers_experts(net, file, err);
}

static const qn_expert_rules experts = { .gate = QN_GATE_SOFTMAX, .normalised = true, .divides_ff = true, .shared = QN_SHARED_AS_DENSE };

extern const qn_arch qn_arch_qwen3next;
const qn_arch qn_arch_qwen3next = {
    .name = "qwen3next",
    .covers = "Qwen 3 Next 80B A3B, Qwen 3 Coder Next",
    .features = QN_F_QK_NORM | QN_F_ROPE_NEOX | QN_F_FF_NORM_NAMED_POST | QN_F_SHARED_GATE,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .others = { &qn_mix_delta, &qn_ff_experts },
    .experts = &experts,
    .act = QN_UNARY_SILU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .layers = layers,
};

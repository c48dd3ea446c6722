#include "models/model.h"

static const qn_key_row keys[] = {
    { "full_attention_interval", QN_KEY_HOOK, 0, false, 0, 0 },
    { "attention.recurrent_layers", QN_KEY_HOOK, 0, false, 0, 0 },
};

static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    for (int32_t i = 0; i < net->n_layer; i++) net->layer[i].q_gated = true;
    return qn_layers_interleaved(net, file, &qn_mix_delta, err);
}

extern const qn_arch qn_arch_qwen35;
const qn_arch qn_arch_qwen35 = {
    .name = "qwen35",
    .covers = "Qwen 3.5 0.8B to 27B",
    .features = QN_F_QK_NORM | QN_F_ROPE_NEOX | QN_F_FF_NORM_NAMED_POST,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .others = { &qn_mix_delta },
    .act = QN_UNARY_SILU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .layers = layers,
};

#include "models/model.h"

static const qn_key_row keys[] = { { "attention.head_count_kv", QN_KEY_HOOK, 0, false, 0, 0 } };

/* Every second layer has experts: those that have a router. */
static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    QN_TRY(qn_layers_without_kv(net, file, &qn_mix_selective, err));
    for (int32_t i = 0; i < net->n_layer; i++)
        if (qn_net_has_tensor(file, "blk.%d.ffn_gate_inp.weight", i)) net->layer[i].ff = &qn_ff_experts;
    return QN_OK;
}

static const qn_expert_rules experts = { .gate = QN_GATE_SOFTMAX, .heeds = QN_HEED_SCALE };

extern const qn_arch qn_arch_jamba;
const qn_arch qn_arch_jamba = {
    .name = "jamba",
    .covers = "Jamba, Jamba Reasoning 3B",
    .features = QN_F_NO_ROPE,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .others = { &qn_mix_selective, &qn_ff_experts },
    .experts = &experts,
    .act = QN_UNARY_SILU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .layers = layers,
};

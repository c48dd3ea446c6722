#include "models/bert.h"

static const qn_key_row keys[] = { { "moe_every_n_layers", QN_KEY_HOOK, 0, false, 0, 0 } };
static const qn_expert_rules rules = { .gate = QN_GATE_SOFTMAX, .heeds = QN_HEED_SCALE, .ff_as_dense = true };

/* Nussbaum and Duderstadt 2025: the second layer of every n has experts, and their weights are the softmax over all. */
static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    int32_t every = 0;
    QN_TRY(qn_net_read_i32(net, file, "moe_every_n_layers", 0, QN_MAX_LAYERS, &every, err));
    for (int32_t i = 0; i < net->n_layer; i++) net->layer[i].ff = every && i % every == 1 ? &qn_ff_experts : &qn_ff_dense;
    return QN_OK;
}

extern const qn_arch qn_arch_nomic_bert_moe;
const qn_arch qn_arch_nomic_bert_moe = {
    .name = "nomic-bert-moe",
    .covers = "Nomic Embed Text 2",
    .features = QN_F_OF_BERT | QN_F_BIAS_OPTIONAL | QN_F_QKV_FUSED | QN_F_NO_GATE | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .act = QN_UNARY_GELU,
    .experts = &rules,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .layers = layers,
};

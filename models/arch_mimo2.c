#include "models/model.h"

static const qn_key_row keys[] = { { "attention.value_scale", QN_KEY_FLOAT, offsetof(qn_net, value_scale), false, 0, 0 } };

/* Layers with a window may have sinks: the file tells. */
static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    for (int32_t i = 0; i < net->n_layer; i++)
        if (qn_net_has_tensor(file, "blk.%d.attn_sinks.weight", i)) net->layer[i].features |= QN_F_SINKS;
    return qn_layers_experts_by_tensor(net, file, err);
}

static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    enum { PERIOD = 6 };
    QN_TRY(qn_net_read_windows(net, file, PERIOD, true, err));
    return qn_net_windowed_rope(net, file, 10000, err);
}

static const qn_expert_rules experts = { .gate = QN_GATE_SIGMOID, .normalised = true, .heeds = QN_HEED_SCALE };

extern const qn_arch qn_arch_mimo2;
const qn_arch qn_arch_mimo2 = {
    .name = "mimo2",
    .covers = "MiMo V2 Flash",
    .features = QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .experts = &experts,
    .act = QN_UNARY_SILU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .layers = layers,
    .adjust = adjust,
};

#include "models/model.h"

static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    QN_TRY(qn_layers_experts(net, file, err));
    for (int32_t i = 0; i < net->n_layer; i++)
        if (net->layer[i].ff == &qn_ff_experts) net->layer[i].beside = &qn_mix_router;
    return QN_OK;
}

/* Where the file has a sliding window, every fourth layer, from the first on, sees everything and is not rotated. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    enum { PERIOD = 4 };
    if (!net->layer[0].window) return QN_OK;
    QN_TRY(qn_net_read_windows(net, file, PERIOD, true, err));
    QN_TRY(qn_net_windowed_rope(net, file, (float)net->rope[0].base, err));
    for (int32_t i = 0; i < net->n_layer; i += PERIOD) net->layer[i].i_rope = -1;
    return QN_OK;
}

static const qn_expert_rules experts = { .gate = QN_GATE_SIGMOID, .normalised = true, .heeds = QN_HEED_GATE };

extern const qn_arch qn_arch_smallthinker;
const qn_arch qn_arch_smallthinker = {
    .name = "smallthinker",
    .covers = "SmallThinker 4B A0.6B and 21B A3B",
    .features = QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense, &qn_mix_router },
    .experts = &experts,
    .act = QN_UNARY_RELU,
    .layers = layers,
    .adjust = adjust,
};

#include "models/model.h"

enum { PERIOD = 4 };
static const qn_key_row keys[] = { { "logit_scale", QN_KEY_FLOAT, offsetof(qn_net, logit_scale), true, 0, 0 } };

/* The first of four layers sees everything, and rotates only where it has no experts. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    QN_TRY(qn_net_read_windows(net, file, PERIOD, true, err));
    QN_TRY(qn_net_windowed_rope(net, file, (float)net->rope[0].base, err));
    for (int32_t i = 0; i < net->n_layer; i++)
        if (!net->layer[i].window && net->layer[i].ff == &qn_ff_experts) net->layer[i].i_rope = -1;
    return QN_OK;
}

static const qn_expert_rules experts = {
    .gate = QN_GATE_SIGMOID,
    .heeds = QN_HEED_GATE | QN_HEED_NORM | QN_HEED_SCALE,
    .shared = QN_SHARED_BY_COUNT,
    .scale_with_shared = 0.5f,
};

extern const qn_arch qn_arch_cohere2moe;
const qn_arch qn_arch_cohere2moe = {
    .name = "cohere2moe",
    .covers = "Command models with experts (cohere2moe)",
    .features = QN_F_LAYER_NORM | QN_F_PARALLEL | QN_F_ONE_NORM,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .experts = &experts,
    .act = QN_UNARY_SILU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .layers = qn_layers_experts,
    .adjust = adjust,
};

#include "models/model.h"

enum { PERIOD = 4 };

/* Every fourth layer sees everything and is not rotated. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    QN_TRY(qn_net_read_windows(net, file, PERIOD, false, err));
    QN_TRY(qn_net_windowed_rope(net, file, (float)net->rope[0].base, err));
    for (int32_t i = PERIOD - 1; i < net->n_layer; i += PERIOD) net->layer[i].i_rope = -1;
    return QN_OK;
}

static const qn_expert_rules experts = { .gate = QN_GATE_SIGMOID, .heeds = QN_HEED_GATE | QN_HEED_NORM | QN_HEED_SCALE, .shared = QN_SHARED_BY_COUNT };

extern const qn_arch qn_arch_afmoe;
const qn_arch qn_arch_afmoe = {
    .name = "afmoe",
    .covers = "Trinity Nano, Mini and Large",
    .features = QN_F_EMBED_SQRT | QN_F_POST_NORM | QN_F_QK_NORM | QN_F_ATTN_GATE | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .experts = &experts,
    .act = QN_UNARY_SILU,
    .layers = qn_layers_experts,
    .adjust = adjust,
};

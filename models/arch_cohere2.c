#include "models/model.h"

enum { PERIOD = 4 };

static const qn_key_row keys[] = { { "logit_scale", QN_KEY_FLOAT, offsetof(qn_net, logit_scale), true, 0, 0 } };

/* Three layers with a sliding window and positions, then one that sees everything and is not rotated. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    QN_TRY(qn_net_read_windows(net, file, PERIOD, false, err));
    for (int32_t i = 0; i < net->n_layer; i++)
        if (!net->layer[i].window) net->layer[i].i_rope = -1;
    return QN_OK;
}

extern const qn_arch qn_arch_cohere2;
const qn_arch qn_arch_cohere2 = {
    .name = "cohere2",
    .covers = "Command R7B, Command A, Aya Expanse (cohere2)",
    .features = QN_F_LAYER_NORM | QN_F_PARALLEL | QN_F_ONE_NORM | QN_F_TIED,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .adjust = adjust,
};

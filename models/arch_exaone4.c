#include "models/model.h"

enum { N_LAYER_32B = 64, WINDOW = 4096 };

static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    (void)file, (void)err;
    for (int32_t i = 0; i < net->n_layer; i++) net->layer[i].window = WINDOW;
    return QN_OK;
}

/* The 32B model: three layers with a sliding window, then one that sees everything and is not rotated. Smaller ones see everything. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    const bool is_hybrid = net->n_layer == N_LAYER_32B;
    if (is_hybrid) return qn_adjust_every_fourth_sees_all(net, file, err);
    for (int32_t i = 0; i < net->n_layer; i++) net->layer[i].window = 0;
    return QN_OK;
}

extern const qn_arch qn_arch_exaone4;
const qn_arch qn_arch_exaone4 = {
    .name = "exaone4",
    .covers = "EXAONE 4.0",
    .features = QN_F_NO_PRE_NORM | QN_F_POST_NORM | QN_F_QK_NORM | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .layers = layers,
    .adjust = adjust,
};

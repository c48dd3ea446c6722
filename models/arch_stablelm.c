#include "models/model.h"

/* The 12B model has one norm for both halves, side by side: the file tells by leaving the other out. */
static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    (void)err;
    for (int32_t i = 0; i < net->n_layer; i++)
        if (!qn_net_has_tensor(file, "blk.%d.ffn_norm.weight", i)) net->layer[i].features |= QN_F_PARALLEL | QN_F_ONE_NORM;
    return QN_OK;
}

extern const qn_arch qn_arch_stablelm;
const qn_arch qn_arch_stablelm = {
    .name = "stablelm",
    .covers = "StableLM 3B, StableLM 2, StableCode",
    .features = QN_F_LAYER_NORM | QN_F_NORM_BIAS | QN_F_QK_NORM_HEADS | QN_F_QK_NORM_OPTIONAL | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .layers = layers,
};

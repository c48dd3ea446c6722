#include "models/model.h"

/* The 13B models have ALiBi in the place of rotation, and no key that says so. */
static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    (void)file;
    (void)err;
    enum { N_LAYER_13B = 40 };
    if (net->n_layer != N_LAYER_13B) return QN_OK;
    net->features |= QN_F_NO_ROPE;
    net->max_alibi_bias = 8;
    return QN_OK;
}

extern const qn_arch qn_arch_baichuan;
const qn_arch qn_arch_baichuan = {
    .name = "baichuan",
    .covers = "Baichuan and Baichuan 2, 7B and 13B",
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .layers = layers,
};

#include "models/model.h"

/* The 13B models have ALiBi in the place of rotation. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    (void)file;
    enum { N_LAYER_13B = 40 };
    if (net->n_layer != N_LAYER_13B) return QN_OK;
    return qn_fail(err, QN_ERR_UNSUPPORTED, "Baichuan 13B biases attention by distance (ALiBi), which quern does not have");
}

extern const qn_arch qn_arch_baichuan;
const qn_arch qn_arch_baichuan = {
    .name = "baichuan",
    .covers = "Baichuan 7B, Baichuan 2 7B",
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .adjust = adjust,
};

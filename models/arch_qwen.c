#include "models/model.h"

/* The file's feed_forward_length counts gate and up together. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    (void)file;
    for (int32_t i = 0; i < net->n_layer; i++) {
        if (net->layer[i].n_ff % 2) return qn_fail(err, QN_ERR_FORMAT, "qwen.feed_forward_length is %d; it must be even", net->layer[i].n_ff);
        net->layer[i].n_ff /= 2;
    }
    return QN_OK;
}

extern const qn_arch qn_arch_qwen;
const qn_arch qn_arch_qwen = {
    .name = "qwen",
    .covers = "Qwen (first generation)",
    .features = QN_F_QKV_FUSED | QN_F_QKV_BIAS | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .adjust = adjust,
};

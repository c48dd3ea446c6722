#include "models/granite.h"

/* Which layers see a window alone, and which rotate: the file lists both. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    int32_t rotates[QN_MAX_LAYERS];
    QN_TRY(qn_granite_adjust_scales(net, file, err));
    QN_TRY(qn_net_read_windows(net, file, 0, false, err));
    const qn_status s = qn_net_read_i32s(net, file, "attention.rope_pattern", 0, 1, rotates, net->n_layer, err);
    if (s == QN_ERR_NOT_FOUND) return QN_OK;
    QN_TRY(s);
    for (int32_t i = 0; i < net->n_layer; i++)
        if (!rotates[i]) net->layer[i].i_rope = -1;
    return QN_OK;
}

static const qn_expert_rules experts = { .gate = QN_GATE_SOFTMAX, .normalised = true, .heeds = QN_HEED_SCALE, .ff_as_dense = true };

extern const qn_arch qn_arch_granite_swa;
const qn_arch qn_arch_granite_swa = {
    .name = "granite_swa",
    .covers = "Granite with sliding windows, dense and with experts",
    .features = QN_F_BIAS_OPTIONAL | QN_F_SINKS | QN_F_SHARED_FUSED,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .others = { &qn_ff_experts },
    .experts = &experts,
    .act = QN_UNARY_SILU,
    .keys = qn_granite_keys,
    .n_keys = QN_GRANITE_SCALES,
    .layers = qn_layers_experts,
    .adjust = adjust,
};

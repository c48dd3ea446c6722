#include "models/model.h"

static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    return qn_net_read_sections(net, file, err);
}

extern const qn_arch qn_arch_qwen2vl;
const qn_arch qn_arch_qwen2vl = {
    .name = "qwen2vl",
    .covers = "Qwen 2 VL, Qwen 2.5 VL (text)",
    .features = QN_F_QKV_BIAS | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .adjust = adjust,
};

#include "models/model.h"

/* OpenAI 2025: every other layer sees a sliding window alone; angles are those of YaRN in both. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    QN_TRY(qn_net_read_windows(net, file, 2, false, err));
    return qn_net_windowed_rope(net, file, (float)net->rope[0].base, err);
}

static const qn_expert_rules experts = { .gate = QN_GATE_SOFTMAX_CHOSEN };

extern const qn_arch qn_arch_gpt_oss;
const qn_arch qn_arch_gpt_oss = {
    .name = "gpt-oss",
    .covers = "gpt-oss 20B and 120B",
    .features = QN_F_QKV_BIAS | QN_F_OUT_BIAS | QN_F_EXPERT_BIAS | QN_F_SINKS | QN_F_FF_NORM_NAMED_POST | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .experts = &experts,
    .act = QN_UNARY_CLAMPED,
    .layers = qn_layers_experts,
    .adjust = adjust,
};

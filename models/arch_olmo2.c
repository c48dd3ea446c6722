#include "models/model.h"

enum { PERIOD = 4 };

/* OLMo 3: where the file has a sliding window, three of four layers have it, with positions that are not scaled. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    if (!net->layer[0].window) return QN_OK;
    QN_TRY(qn_net_read_windows(net, file, PERIOD, false, err));
    QN_TRY(qn_net_windowed_rope(net, file, (float)net->rope[0].base, err));
    net->rope[1].freq_scale = 1;
    net->rope[1].ext_factor = net->rope[1].attn_factor = 0;
    return QN_OK;
}

extern const qn_arch qn_arch_olmo2;
const qn_arch qn_arch_olmo2 = {
    .name = "olmo2",
    .covers = "OLMo 2, OLMo 3",
    .features = QN_F_NO_PRE_NORM | QN_F_POST_NORM | QN_F_QK_NORM_WIDE | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .adjust = adjust,
};

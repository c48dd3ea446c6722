#include "models/model.h"

static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    enum { PERIOD = 4 };
    QN_TRY(qn_net_read_windows(net, file, PERIOD, false, err));
    return qn_net_windowed_rope(net, file, (float)net->rope[0].base, err);
}

extern const qn_arch qn_arch_spark2_5;
const qn_arch qn_arch_spark2_5 = {
    .name = "spark2_5",
    .covers = "Spark 2.5",
    .features = QN_F_ATTN_GATE | QN_F_GATE_OF_HEAD | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_GELU,
    .adjust = adjust,
};

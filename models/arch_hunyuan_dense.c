#include "models/hunyuan.h"

#include <math.h>

const qn_key_row qn_hunyuan_keys[QN_HUNYUAN_KEYS] = { { "rope.scaling.alpha", QN_KEY_HOOK, 0, false, 0, 0 } };

/* Longer contexts by a larger base (NTK-aware scaling), of which some files have the factor. */
qn_status qn_hunyuan_adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    float alpha = 0;
    QN_TRY(qn_net_read_f32(net, file, "rope.scaling.alpha", &alpha, err));
    if (alpha > 0 && net->head_dim > 2) net->rope[0].base *= pow((double)alpha, net->head_dim / (net->head_dim - 2.0));
    return qn_net_read_sections(net, file, err);
}

extern const qn_arch qn_arch_hunyuan_dense;
const qn_arch qn_arch_hunyuan_dense = {
    .name = "hunyuan-dense",
    .covers = "Hunyuan 0.5B to 7B",
    .features = QN_F_QK_NORM | QN_F_QK_NORM_LATE | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .keys = qn_hunyuan_keys,
    .n_keys = QN_HUNYUAN_KEYS,
    .adjust = qn_hunyuan_adjust,
};

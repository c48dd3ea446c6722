#include "models/model.h"

#include <math.h>

static const qn_key_row keys[] = { { "rope.scaling.alpha", QN_KEY_HOOK, 0, false, 0, 0 } };

/* Longer contexts by a larger base (NTK-aware scaling), of which some files have the factor. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    float alpha = 0;
    QN_TRY(qn_net_read_f32(net, file, "rope.scaling.alpha", &alpha, err));
    if (alpha > 0 && net->head_dim > 2) net->rope[0].base *= pow((double)alpha, net->head_dim / (net->head_dim - 2.0));
    return QN_OK;
}

extern const qn_arch qn_arch_hunyuan_dense;
const qn_arch qn_arch_hunyuan_dense = {
    .name = "hunyuan-dense",
    .covers = "Hunyuan 0.5B to 7B",
    .features = QN_F_QK_NORM | QN_F_QK_NORM_LATE | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .adjust = adjust,
};

#include "models/model.h"

static const qn_key_row keys[] = { { "rope.dimension_sections", QN_KEY_HOOK, 0, false, 0, 0 } };

/* Files of the multimodal models have sections of the rotated dimensions, and rotate pairs half of these apart. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    QN_TRY(qn_net_read_sections(net, file, err));
    if (net->rope[0].sections[0] || net->rope[0].sections[1] || net->rope[0].sections[2]) net->rope[0].neox = true;
    return QN_OK;
}

extern const qn_arch qn_arch_glm4;
const qn_arch qn_arch_glm4 = {
    .name = "glm4",
    .covers = "GLM-4 0414, GLM-Z1",
    .features = QN_F_GATE_UP_FUSED | QN_F_POST_NORM,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .adjust = adjust,
};

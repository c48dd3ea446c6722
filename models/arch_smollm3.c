#include "models/model.h"

enum { PERIOD = 4 };

/* Every fourth layer is not rotated (Yang et al. 2025, "Rope to Nope and back again"). */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    (void)file, (void)err;
    for (int32_t i = PERIOD - 1; i < net->n_layer; i += PERIOD) net->layer[i].i_rope = -1;
    return QN_OK;
}

extern const qn_arch qn_arch_smollm3;
const qn_arch qn_arch_smollm3 = {
    .name = "smollm3",
    .covers = "SmolLM3",
    .features = QN_F_BIAS_OPTIONAL,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .adjust = adjust,
};

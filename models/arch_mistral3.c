#include "models/model.h"

static const qn_key_row keys[] = {
    { "attention.temperature_scale", QN_KEY_FLOAT, offsetof(qn_net, attn_temp_scale), false, 0, 0 },
    { "attention.scale", QN_KEY_FLOAT, offsetof(qn_net, attn_scale), false, 0, 0 },
};

/* Queries grow with the logarithm of how often the position has passed the original context. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    (void)file, (void)err;
    net->attn_temp_span = net->rope[0].n_ctx_orig;
    return QN_OK;
}

extern const qn_arch qn_arch_mistral3;
const qn_arch qn_arch_mistral3 = {
    .name = "mistral3",
    .covers = "Ministral 3",
    .features = QN_F_BIAS_OPTIONAL,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .adjust = adjust,
};

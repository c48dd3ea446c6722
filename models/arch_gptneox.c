#include "models/model.h"

static const qn_key_row keys[] = { { "use_parallel_residual", QN_KEY_HOOK, 0, true, 0, 1 } };

/* Black et al. 2022: both halves read the same residual stream, each by its own norm, unless the file says that they follow one another. */
static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    int32_t is_parallel = 0;
    const qn_status s = qn_net_read_i32s(net, file, keys[0].name, 0, 1, &is_parallel, 1, err);
    if (s != QN_OK) return s;
    for (int32_t i = 0; i < net->n_layer && is_parallel; i++) net->layer[i].features |= QN_F_PARALLEL;
    return QN_OK;
}

extern const qn_arch qn_arch_gptneox;
const qn_arch qn_arch_gptneox = {
    .name = "gptneox",
    .covers = "Pythia, GPT-NeoX, Dolly 2, RedPajama-INCITE",
    .features = QN_F_QKV_BIAS | QN_F_OUT_BIAS | QN_F_FF_BIAS | QN_F_QKV_FUSED | QN_F_NO_GATE | QN_F_LAYER_NORM | QN_F_NORM_BIAS | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_GELU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .layers = layers,
};

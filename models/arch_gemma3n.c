#include "models/model.h"

#include <math.h>

enum { PERIOD = 5, N_STREAMS = 4, ROW = 256, RANK = 64, N_OWN_KV = 20, N_SPARSE = 10 };
static const float DEVIATIONS = 1.6448533535f; /* 95 of 100 gates stay shut */

static const qn_key_row keys[] = {
    { "final_logit_softcapping", QN_KEY_FLOAT, offsetof(qn_net, logit_softcap), false, 0, 0 },
    { "attention.sliding_window_pattern", QN_KEY_HOOK, 0, false, 0, 0 },
    { "attention.shared_kv_layers", QN_KEY_HOOK, 0, false, 0, 0 },
    { "activation_sparsity_scale", QN_KEY_HOOK, 0, false, 0, 0 },
};

/* Gemma Team 2025. What files leave out is as in the two public sizes. */
static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    net->streams.n = N_STREAMS;
    net->layer_rows.width = ROW;
    net->logit_softcap = 30;
    net->attn_scale = 1;
    for (int32_t i = 0; i < net->n_layer; i++) {
        net->layer[i].around = &qn_around_altup;
        net->layer[i].tail = &qn_ff_layer_rows;
        net->layer[i].deviations = i < N_SPARSE ? DEVIATIONS : -INFINITY;
    }
    return qn_layers_laurel(net, file, RANK, err);
}

static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    QN_TRY(qn_net_read_windows(net, file, PERIOD, false, err));
    QN_TRY(qn_net_local_rope(net, file, 10000, err));
    QN_TRY(qn_net_share_kv(net, file, N_OWN_KV, err));
    return qn_net_read_layer_f32s(net, file, "activation_sparsity_scale", -INFINITY, 100, &net->layer->deviations, err);
}

extern const qn_arch qn_arch_gemma3n;
const qn_arch qn_arch_gemma3n = {
    .name = "gemma3n",
    .covers = "Gemma 3n E2B and E4B (text)",
    .features = QN_F_QK_NORM | QN_F_V_NORM | QN_F_POST_NORM | QN_F_ROPE_NEOX | QN_F_EMBED_SQRT | QN_F_STREAMS | QN_F_LAYER_ROWS,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .others = { &qn_mix_laurel, &qn_around_altup, &qn_ff_layer_rows },
    .act = QN_UNARY_GELU_HALF,
    .cache_type = "F32",
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .layers = layers,
    .adjust = adjust,
};

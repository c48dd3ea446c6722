#include "models/model.h"

#include <math.h>

enum { N_LAYER_27B = 46, PERIOD = 2, WINDOW = 4096 };

static const qn_key_row keys[] = {
    { "attn_logit_softcapping", QN_KEY_FLOAT, offsetof(qn_net, attn_softcap), false, 0, 0 },
    { "final_logit_softcapping", QN_KEY_FLOAT, offsetof(qn_net, logit_softcap), false, 0, 0 },
};

static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    (void)file, (void)err;
    net->attn_softcap = 50; /* the first files of Gemma 2 do not name them */
    net->logit_softcap = 30;
    for (int32_t i = 0; i < net->n_layer; i++) net->layer[i].window = WINDOW;
    return QN_OK;
}

/* Gemma Team 2024: layers with a sliding window and layers that see everything by turns. The 27B model scales queries by its width per head. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    QN_TRY(qn_net_read_windows(net, file, PERIOD, false, err));
    QN_TRY(qn_net_windowed_rope(net, file, (float)net->rope[0].base, err));
    if (net->n_layer == N_LAYER_27B) net->attn_scale = 1 / sqrtf((float)net->n_embd / (float)net->layer[0].n_head);
    return QN_OK;
}

extern const qn_arch qn_arch_gemma2;
const qn_arch qn_arch_gemma2 = {
    .name = "gemma2",
    .covers = "Gemma 2",
    .features = QN_F_POST_NORM | QN_F_ROPE_NEOX | QN_F_EMBED_SQRT | QN_F_TIED,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_GELU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .layers = layers,
    .adjust = adjust,
};

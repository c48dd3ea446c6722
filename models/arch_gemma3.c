#include "models/model.h"

#include <math.h>

enum { N_LAYER_27B = 62, PERIOD = 6 };

static const qn_key_row keys[] = {
    { "final_logit_softcapping", QN_KEY_FLOAT, offsetof(qn_net, logit_softcap), false, 0, 0 },
};

/* Gemma Team 2025: five layers with a sliding window, then one that sees everything; the windowed ones have their own rope base and no
 * position scaling. The 27B model scales queries by its width per head instead of the head size. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    QN_TRY(qn_net_read_windows(net, file, PERIOD, false, err));
    QN_TRY(qn_net_local_rope(net, file, 10000, err));
    if (net->n_layer == N_LAYER_27B) net->attn_scale = 1 / sqrtf((float)net->n_embd / (float)net->layer[0].n_head);
    return QN_OK;
}

extern const qn_arch qn_arch_gemma3;
const qn_arch qn_arch_gemma3 = {
    .name = "gemma3",
    .covers = "Gemma 3 (text)",
    .features = QN_F_QK_NORM | QN_F_POST_NORM | QN_F_ROPE_NEOX | QN_F_EMBED_SQRT,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_GELU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .adjust = adjust,
};

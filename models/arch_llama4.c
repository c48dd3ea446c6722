#include "models/model.h"

static const qn_key_row keys[] = { { "attention.scale", QN_KEY_FLOAT, offsetof(qn_net, attn_scale), false, 0, 0 } };

static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    enum { CHUNK = 8192 };
    for (int32_t i = 0; i < net->n_layer; i++) net->layer[i].window = CHUNK;
    return qn_layers_experts(net, file, err);
}

/* Meta 2025: three layers that are rotated and see chunks of the text, then one that sees all of it, is not rotated, and whose queries grow with the
 * logarithm of the position. Every layer with experts has a shared one of their size. Of the two public models the larger one has no norms of q and k. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    enum { PERIOD = 4, N_EXPERTS_OF_LARGE = 128 };
    float base = (float)net->rope[0].base;
    QN_TRY(qn_net_read_f32(net, file, "rope.freq_base_swa", &base, err));
    if (!net->layer[0].window || base != (float)net->rope[0].base)
        return qn_fail(err, QN_ERR_UNSUPPORTED, "llama4 without chunks, or with other angles in them, which quern does not support");
    QN_TRY(qn_net_read_windows(net, file, PERIOD, false, err));
    net->temper = (qn_temper){ .scale = 0.1f, .span = 8192, .from = 1 };
    for (int32_t i = 0; i < net->n_layer; i++) {
        qn_layer *l = &net->layer[i];
        l->is_chunked = l->window > 0;
        if ((i + 1) % PERIOD == 0) l->i_rope = -1;
        else l->features |= QN_F_NO_TEMP | (l->x.n == N_EXPERTS_OF_LARGE ? 0 : QN_F_QK_NORM_PLAIN);
        if (l->ff != &qn_ff_experts) continue;
        l->features |= QN_F_SHARED_EXPERT;
        l->x.n_ff_shared = l->x.n_ff;
    }
    return QN_OK;
}

static const qn_expert_rules experts = { .gate = QN_GATE_SIGMOID, .weighs_input = true };

extern const qn_arch qn_arch_llama4;
const qn_arch qn_arch_llama4 = {
    .name = "llama4",
    .covers = "Llama 4 Scout and Maverick (text)",
    .features = QN_F_QK_NORM_LATE | QN_F_BIAS_OPTIONAL,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .experts = &experts,
    .act = QN_UNARY_SILU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .layers = layers,
    .adjust = adjust,
};

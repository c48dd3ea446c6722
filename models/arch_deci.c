#include "models/model.h"

static const qn_key_row keys[] = {
    { "attention.head_count", QN_KEY_HOOK, 0, false, 0, 0 },
    { "feed_forward_length", QN_KEY_HOOK, 0, false, 0, 0 },
    { "attention.scale", QN_KEY_FLOAT, offsetof(qn_net, attn_scale), false, 0, 0 },
};

/* An architecture search has taken attention or the feed-forward out of single layers (Bercovich et al. 2024, "Puzzle"). */
static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    int32_t n_head[QN_MAX_LAYERS], n_kv[QN_MAX_LAYERS], n_ff[QN_MAX_LAYERS];
    QN_TRY(qn_net_read_i32s(net, file, "attention.head_count", 0, 1 << 16, n_head, net->n_layer, err));
    QN_TRY(qn_net_read_i32s(net, file, "attention.head_count_kv", 0, 1 << 16, n_kv, net->n_layer, err));
    QN_TRY(qn_net_read_i32s(net, file, "feed_forward_length", 0, 1 << 24, n_ff, net->n_layer, err));
    for (int32_t i = 0; i < net->n_layer; i++) {
        qn_layer *l = &net->layer[i];
        if (n_head[i] && !n_kv[i])
            return qn_fail(err, QN_ERR_UNSUPPORTED, "layer %d has a matrix in the place of attention, which quern does not support", i);
        if (!n_head[i]) l->mixer = NULL;
        if (!n_ff[i]) l->ff = NULL;
    }
    const qn_layer *last = &net->layer[net->n_layer - 1];
    return last->mixer || last->ff ? QN_OK : qn_fail(err, QN_ERR_FORMAT, "the last layer has neither attention nor a feed-forward");
}

extern const qn_arch qn_arch_deci;
const qn_arch qn_arch_deci = {
    .name = "deci",
    .covers = "Llama 3.1 Nemotron Nano, Super and Ultra",
    .features = QN_F_BIAS_OPTIONAL,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .layers = layers,
};

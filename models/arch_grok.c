#include "models/model.h"

static const qn_key_row keys[] = {
    { "logit_scale", QN_KEY_FLOAT, offsetof(qn_net, logit_scale), false, 0, 0 },
    { "embedding_scale", QN_KEY_FLOAT, offsetof(qn_net, embed_scale), false, 0, 0 },
    { "attention.output_scale", QN_KEY_FLOAT, offsetof(qn_net, attn_scale), false, 0, 0 },
    { "attn_logit_softcapping", QN_KEY_FLOAT, offsetof(qn_net, attn_softcap), false, 0, 0 },
    { "final_logit_softcapping", QN_KEY_FLOAT, offsetof(qn_net, logit_softcap), false, 0, 0 },
    { "router_logit_softcapping", QN_KEY_HOOK, 0, false, 0, 0 },
};

static const qn_tensor_row tensors[] = {
    { "blk.%d.attn_output_norm.weight", QN_LAYER_V(attn_post_norm), .rows = { qn_dim_embd }, .required = QN_ALWAYS },
    { "blk.%d.layer_output_norm.weight", QN_LAYER_V(ffn_post_norm), .rows = { qn_dim_embd }, .unless = QN_F_POST_FFW, .required = QN_ALWAYS },
    { "blk.%d.post_ffw_norm.weight", QN_LAYER_V(ffn_post_norm), .rows = { qn_dim_embd }, .only = QN_F_POST_FFW, .required = QN_ALWAYS },
};

/* Grok 2 has a dense feed-forward beside the experts, and another name for the norm behind them. */
static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    net->embed_scale = 78.38367176906169f; /* of the first files, which have no keys for the scales of Grok 1 */
    net->logit_scale = 0.5773502691896257f;
    net->attn_scale = 0.08838834764831845f;
    net->attn_softcap = 30;
    QN_TRY(qn_layers_experts(net, file, err));
    for (int32_t i = 0; i < net->n_layer; i++) {
        if (qn_net_has_tensor(file, "blk.%d.ffn_up.weight", i)) net->layer[i].features |= QN_F_SHARED_DENSE;
        if (qn_net_has_tensor(file, "blk.%d.post_ffw_norm.weight", i)) net->layer[i].features |= QN_F_POST_FFW;
    }
    return QN_OK;
}

static const qn_expert_rules experts = { .gate = QN_GATE_SOFTMAX, .normalised = true, .heeds = QN_HEED_SCALE, .scale_with_shared = 0.70710678f };

extern const qn_arch qn_arch_grok;
const qn_arch qn_arch_grok = {
    .name = "grok",
    .covers = "Grok 1, Grok 2",
    .features = QN_F_POST_NORM | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .experts = &experts,
    .act = QN_UNARY_GELU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .layer_tensors = tensors,
    .n_layer_tensors = sizeof tensors / sizeof *tensors,
    .layers = layers,
};

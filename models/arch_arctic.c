#include "models/model.h"

/* A dense feed-forward in every layer, and experts that read the stream as attention does (Snowflake 2024, "dense-MoE hybrid"). */
static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    (void)file, (void)err;
    for (int32_t i = 0; i < net->n_layer; i++) {
        net->layer[i].ff = &qn_ff_dense;
        net->layer[i].second = &qn_ff_experts;
    }
    return QN_OK;
}

/* feed_forward_length is an expert's; the dense one is as wide as the stream. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    (void)file, (void)err;
    for (int32_t i = 0; i < net->n_layer; i++) net->layer[i].n_ff = net->n_embd;
    return QN_OK;
}

static const qn_expert_rules experts = { .gate = QN_GATE_SOFTMAX, .normalised = true, .heeds = QN_HEED_SCALE, .ff_as_dense = true };

extern const qn_arch qn_arch_arctic;
const qn_arch qn_arch_arctic = {
    .name = "arctic",
    .covers = "Snowflake Arctic",
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .experts = &experts,
    .act = QN_UNARY_SILU,
    .layers = layers,
    .adjust = adjust,
};

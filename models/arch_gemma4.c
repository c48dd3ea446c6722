#include "models/model.h"

enum { PERIOD = 6 };

static const qn_key_row keys[] = {
    { "final_logit_softcapping", QN_KEY_FLOAT, offsetof(qn_net, logit_softcap), false, 0, 0 },
    { "attention.sliding_window_pattern", QN_KEY_HOOK, 0, false, 0, 0 },
    { "attention.shared_kv_layers", QN_KEY_HOOK, 0, false, 0, 0 },
    { "attention.key_length_swa", QN_KEY_HOOK, 0, false, 0, 0 },
    { "attention.value_length_swa", QN_KEY_HOOK, 0, false, 0, 0 },
    { "rope.dimension_count_swa", QN_KEY_HOOK, 0, false, 0, 0 },
};

static const qn_expert_rules experts = { .gate = QN_GATE_SOFTMAX, .normalised = true };

/* Gemma Team 2026. The small ones have a row for each token and layer; in the large ones values may be keys, and experts stand beside the dense
 * feed-forward. */
static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    int32_t width = 0;
    QN_TRY(qn_net_read_i32(net, file, "embedding_length_per_layer_input", 0, 1 << 16, &width, err));
    if (!width) net->features &= ~QN_F_LAYER_ROWS;
    net->logit_softcap = 30;
    net->attn_scale = 1;
    for (int32_t i = 0; i < net->n_layer; i++) {
        qn_layer *l = &net->layer[i];
        if (width) l->tail = &qn_ff_layer_rows;
        if (qn_net_has_tensor(file, "blk.%d.ffn_gate_inp.weight", i)) {
            l->ff_beside = &qn_ff_experts;
            l->features |= QN_F_FF_BESIDE;
            qn_layer_experts_look(l, file, i);
        }
        if (!qn_net_has_tensor(file, "blk.%d.attn_v.weight", i)) l->features |= QN_F_V_IS_K;
    }
    return QN_OK;
}

static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    QN_TRY(qn_net_read_windows(net, file, PERIOD, false, err));
    QN_TRY(qn_net_local_rope(net, file, 10000, err));
    QN_TRY(qn_net_windowed_heads(net, file, err));
    return qn_net_share_kv(net, file, net->n_layer, err);
}

extern const qn_arch qn_arch_gemma4;
const qn_arch qn_arch_gemma4 = {
    .name = "gemma4",
    .covers = "Gemma 4 E2B, E4B, 26B A4B and 31B (text)",
    .features = QN_F_QK_NORM | QN_F_V_NORM | QN_F_POST_NORM | QN_F_ROPE_NEOX | QN_F_EMBED_SQRT | QN_F_LAYER_ROWS | QN_F_OUT_SCALE,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .others = { &qn_ff_experts, &qn_ff_layer_rows },
    .experts = &experts,
    .act = QN_UNARY_GELU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .layers = layers,
    .adjust = adjust,
};

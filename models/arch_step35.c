#include "models/model.h"

static const qn_key_row keys[] = {
    { "swiglu_clamp_exp", QN_KEY_HOOK, 0, false, 0, 0 },
    { "swiglu_clamp_shexp", QN_KEY_HOOK, 0, false, 0, 0 },
};

/* As long as the larger of the two rotations. */
static int64_t dim_factors(const qn_net *net, const qn_layer *l)
{
    (void)l;
    return (net->rope[0].n_rot > net->rope[1].n_rot ? net->rope[0].n_rot : net->rope[1].n_rot) / 2;
}
static const qn_tensor_row tensors[] = { { "rope_freqs.weight", QN_NET_V(rope_factors), .rows = { dim_factors } } };

static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    QN_TRY(qn_net_read_layer_f32s(net, file, "swiglu_clamp_exp", -1e6, 1e6, &net->layer->most, err));
    QN_TRY(qn_net_read_layer_f32s(net, file, "swiglu_clamp_shexp", -1e6, 1e6, &net->layer->most_shared, err));
    return qn_layers_experts_by_tensor(net, file, err);
}

/* Layers that see everything rotate half as much of a head. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    enum { PERIOD = 4 };
    QN_TRY(qn_net_read_windows(net, file, PERIOD, true, err));
    QN_TRY(qn_net_windowed_rope(net, file, 10000, err));
    net->rope[0].n_rot = net->rope[0].n_rot / 4 * 2;
    return qn_net_read_i32(net, file, "rope.dimension_count_swa", 0, net->head_dim, &net->rope[1].n_rot, err);
}

static const qn_expert_rules experts = { .gate = QN_GATE_SIGMOID, .heeds = QN_HEED_GATE | QN_HEED_NORM | QN_HEED_SCALE };

extern const qn_arch qn_arch_step35;
const qn_arch qn_arch_step35 = {
    .name = "step35",
    .covers = "Step 3.5 Flash",
    .features = QN_F_QK_NORM | QN_F_QK_NORM_OPTIONAL | QN_F_ATTN_GATE | QN_F_GATE_OF_HEAD | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .experts = &experts,
    .act = QN_UNARY_SILU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .layers = layers,
    .adjust = adjust,
};

#include "models/model.h"

/* Attention's gate has one number for each head, or one for each dimension: the file tells. */
static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    int32_t n_head[QN_MAX_LAYERS];
    QN_TRY(qn_layers_experts(net, file, err));
    const qn_status s = qn_net_read_i32s(net, file, "attention.head_count", 1, 1 << 16, n_head, net->n_layer, err);
    if (s == QN_ERR_NOT_FOUND) return QN_OK; /* missed where heads are read */
    QN_TRY(s);
    for (int32_t i = 0; i < net->n_layer; i++)
        if (qn_net_tensor_rows(file, "blk.%d.attn_gate.weight", i) > n_head[i]) net->layer[i].features &= ~QN_F_GATE_OF_HEAD;
    return QN_OK;
}

/* Where the file has a sliding window, the first of four layers sees everything; the others have angles of their own, never stretched. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    enum { PERIOD = 4 };
    if (!net->layer[0].window) return QN_OK;
    QN_TRY(qn_net_read_windows(net, file, PERIOD, true, err));
    QN_TRY(qn_net_local_rope(net, file, (float)net->rope[0].base, err));
    return qn_net_read_i32(net, file, "rope.dimension_count_swa", 0, net->head_dim, &net->rope[1].n_rot, err);
}

static const qn_expert_rules experts = {
    .gate = QN_GATE_SIGMOID,
    .heeds = QN_HEED_GATE | QN_HEED_NORM | QN_HEED_SCALE,
    .shared = QN_SHARED_BY_COUNT | QN_SHARED_ONE,
};

extern const qn_arch qn_arch_laguna;
const qn_arch qn_arch_laguna = {
    .name = "laguna",
    .covers = "Laguna XS and M",
    .features = QN_F_QK_NORM | QN_F_ATTN_GATE | QN_F_GATE_OF_HEAD | QN_F_GATE_SOFTPLUS | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .experts = &experts,
    .act = QN_UNARY_SILU,
    .layers = layers,
    .adjust = adjust,
};

#include "models/model.h"

#include <math.h>

/* The feed-forward that every token takes: act(gate) * up, down (Shazeer 2020), or without the gate act(up), down. */

static const qn_key_row keys[] = { { "feed_forward_length", QN_KEY_LAYER, offsetof(qn_layer, n_ff), true, 0, 1 << 24 } };

#define ANY_BIAS (QN_F_FF_BIAS | QN_F_BIAS_OPTIONAL)
#define GATE_UP .at = { offsetof(qn_layer, gate), offsetof(qn_layer, up) }, .n_at = 2, .rows = { qn_dim_ff, qn_dim_ff }
static const qn_tensor_row tensors[] = {
    { "blk.%d.ffn_up.weight", GATE_UP, .cols = qn_dim_embd, .only = QN_F_GATE_UP_FUSED, .required = QN_ALWAYS },
    { "blk.%d.ffn_gate.weight", QN_LAYER_W(gate), .cols = qn_dim_embd, .rows = { qn_dim_ff }, .unless = QN_F_NO_GATE | QN_F_GATE_UP_FUSED,
      .required = QN_ALWAYS },
    { "blk.%d.ffn_up.weight", QN_LAYER_W(up), .cols = qn_dim_embd, .rows = { qn_dim_ff }, .unless = QN_F_GATE_UP_FUSED, .required = QN_ALWAYS },
    { "blk.%d.ffn_sub_norm.weight", QN_LAYER_V(ffn_sub_norm), .rows = { qn_dim_ff }, .only = QN_F_SUB_NORM, .required = QN_ALWAYS },
    { "blk.%d.ffn_down.weight", QN_LAYER_W(down), .cols = qn_dim_ff, .rows = { qn_dim_embd }, .required = QN_ALWAYS },
    { "blk.%d.ffn_gate.bias", QN_LAYER_V(bgate), .rows = { qn_dim_ff }, .only = ANY_BIAS, .unless = QN_F_NO_GATE | QN_F_GATE_UP_FUSED,
      .required = QN_F_FF_BIAS },
    { "blk.%d.ffn_up.bias", QN_LAYER_V(bup), .rows = { qn_dim_ff }, .only = ANY_BIAS, .unless = QN_F_GATE_UP_FUSED, .required = QN_F_FF_BIAS },
    { "blk.%d.ffn_down.bias", QN_LAYER_V(bdown), .rows = { qn_dim_embd }, .only = ANY_BIAS, .required = QN_F_FF_BIAS },
};

static qn_status check(const qn_net *net, qn_layer *l, int32_t i, qn_err *err)
{
    (void)net;
    return l->n_ff > 0 ? QN_OK : qn_fail(err, QN_ERR_FORMAT, "layer %d has a feed-forward of %d rows; it must be at least 1", i, l->n_ff);
}

/* The whole row of gates says which of them open, so that they wait for each other; Q is free behind the mixer. */
static void plan_sparse(const qn_net *net, const qn_layer *l, qn_plan *p, const qn_input *in)
{
    const qn_mat gate_up[] = { { .w = &l->gate, .bias = l->bgate.w, .out = QN_REG_G }, { .w = &l->up, .bias = l->bup.w, .out = QN_REG_Q } };
    qn_plan_matmul(p, "gate up", in, gate_up, 2, QN_UNARY_NONE);
    qn_plan_sparse(p, &(qn_sparse_args){ .at = QN_REG_G, .up = QN_REG_Q, .width = l->n_ff, .deviations = l->deviations, .act = net->act });
}

static void plan(const qn_net *net, const qn_layer *l, int32_t i_layer, qn_plan *p, const qn_input *in)
{
    (void)i_layer;
    const qn_mat up = { .w = &l->up, .bias = l->bup.w, .out = QN_REG_G, .act = net->act };
    const qn_mat gate_up[] = { { .w = &l->gate, .bias = l->bgate.w, .out = QN_REG_G, .most = l->most_shared }, { .w = &l->up, .bias = l->bup.w } };
    if (isfinite(l->deviations)) plan_sparse(net, l, p, in);
    else if (l->features & QN_F_NO_GATE) qn_plan_matmul(p, "up", in, &up, 1, QN_UNARY_NONE);
    else qn_plan_matmul(p, "gate up", in, gate_up, 2, net->act);
    if (l->features & QN_F_XIELU) qn_plan_xielu(p, &(qn_xielu_args){ QN_REG_G, l->n_ff, l->xielu });
}

static void close(const qn_net *net, const qn_layer *l, qn_plan *p, const qn_close_to *to)
{
    qn_input g = qn_plan_rows(QN_REG_G, l->n_ff);
    if (l->features & QN_F_SUB_NORM) g.pre = qn_net_norm(net, &l->ffn_sub_norm, NULL);
    qn_plan_close(p, "down", &g, &l->down, l->bdown.w, to);
}

const qn_part qn_ff_dense = {
    .name = "dense",
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .check = check,
    .plan = plan,
    .close = close,
};

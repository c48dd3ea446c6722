#include "models/model.h"

/* Short convolutions with a gate before and one behind (Liquid AI 2025, "LFM2"): B * x, convolved along the tokens, times C. */

static const qn_key_row keys[] = { { "shortconv.l_cache", QN_KEY_LAYER, offsetof(qn_layer, recur.n_taps), true, 2, QN_MAX_TAPS } };

static int64_t dim_in(const qn_net *net, const qn_layer *l) { (void)l; return 3 * (int64_t)net->n_embd; }

static const qn_tensor_row tensors[] = {
    { "blk.%d.shortconv.in_proj.weight", QN_LAYER_W(recur.in), .cols = qn_dim_embd, .rows = { dim_in }, .required = QN_ALWAYS },
    { "blk.%d.shortconv.conv.weight", QN_LAYER_V(recur.conv), .rows = { qn_dim_taps }, .slices = qn_dim_embd, .across = true, .required = QN_ALWAYS },
    { "blk.%d.shortconv.out_proj.weight", QN_LAYER_W(recur.out), .cols = qn_dim_embd, .rows = { qn_dim_embd }, .required = QN_ALWAYS },
};

static qn_status check(const qn_net *net, qn_layer *l, int32_t i, qn_err *err)
{
    (void)i;
    (void)err;
    l->state_floats = qn_conv_state_floats(net->n_embd, l->recur.n_taps);
    return QN_OK;
}

static void plan(const qn_net *net, const qn_layer *l, int32_t i_layer, qn_plan *p, const qn_input *in)
{
    const int64_t n = net->n_embd;
    qn_plan_matmul(p, "conv in", in, &(qn_mat){ .w = &l->recur.in, .out = QN_REG_Q }, 1, QN_UNARY_NONE);
    qn_plan_conv(p, &(qn_conv_stage_args){
        .in = { QN_REG_Q, 0 }, .out = { QN_REG_O, 0 }, .n_channels = n, .n_taps = l->recur.n_taps, .w = l->recur.conv.w, .gated = true,
        .before = { QN_REG_Q, 2 * n }, .after = { QN_REG_Q, n }, .i_state = i_layer,
    });
    if (i_layer == net->n_layer - 1) qn_plan_only_outputs(p, QN_REG_O);
}

static void close(const qn_net *net, const qn_layer *l, qn_plan *p, const qn_close_to *to)
{
    const qn_input o = qn_plan_rows(QN_REG_O, net->n_embd);
    qn_plan_close(p, "conv out", &o, &l->recur.out, NULL, to);
}

const qn_part qn_mix_shortconv = {
    .name = "short convolution",
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .check = check,
    .plan = plan,
    .close = close,
};

#include "models/model.h"

/* Gated delta nets (Yang et al. 2024): heads with a matrix as memory, from which a key first takes what it already brings. */

#define AT(field) offsetof(qn_layer, recur.field)
static const qn_key_row keys[] = {
    { "ssm.conv_kernel", QN_KEY_LAYER, AT(n_taps), true, 1, QN_MAX_TAPS },
    { "ssm.inner_size", QN_KEY_LAYER, AT(d_inner), true, 1, 1 << 20 },
    { "ssm.state_size", QN_KEY_LAYER, AT(d_state), true, 1, QN_MAX_STATE },
    { "ssm.time_step_rank", QN_KEY_LAYER, AT(n_dt), true, 1, 1 << 16 },
    { "ssm.group_count", QN_KEY_LAYER, AT(n_group), true, 1, 1 << 16 },
};

static int64_t dim_keys(const qn_layer *l) { return (int64_t)l->recur.n_group * l->recur.d_state; }
static int64_t dim_conv(const qn_net *net, const qn_layer *l) { (void)net; return 2 * dim_keys(l) + l->recur.d_inner; }
static int64_t dim_rates(const qn_net *net, const qn_layer *l) { (void)net; return l->recur.by_key ? 2 * (int64_t)l->recur.n_dt : QN_NO_TENSOR; }
static int64_t dim_rate(const qn_net *net, const qn_layer *l) { (void)net; return l->recur.by_key ? QN_NO_TENSOR : l->recur.n_dt; }
static int64_t dim_head(const qn_net *net, const qn_layer *l) { (void)net; return l->recur.d_inner / l->recur.n_dt; }

static const qn_tensor_row tensors[] = {
    { "blk.%d.attn_qkv.weight", QN_LAYER_W(recur.in), .cols = qn_dim_embd, .rows = { dim_conv }, .required = QN_ALWAYS },
    { "blk.%d.attn_gate.weight", QN_LAYER_W(recur.z), .cols = qn_dim_embd, .rows = { qn_dim_inner }, .required = QN_ALWAYS },
    { "blk.%d.ssm_conv1d.weight", QN_LAYER_V(recur.conv), .rows = { qn_dim_taps }, .slices = dim_conv, .across = true, .required = QN_ALWAYS },
    { "blk.%d.ssm_dt.bias", QN_LAYER_V(recur.dt_b), .rows = { qn_dim_dt }, .required = QN_ALWAYS },
    { "blk.%d.ssm_a", QN_LAYER_V(recur.a), .rows = { qn_dim_dt }, .required = QN_ALWAYS },
    { "blk.%d.ssm_ba.weight", QN_LAYER_W(recur.beta), .cols = qn_dim_embd, .rows = { dim_rates }, .required = QN_ALWAYS },
    { "blk.%d.ssm_beta.weight", QN_LAYER_W(recur.beta), .cols = qn_dim_embd, .rows = { dim_rate }, .required = QN_ALWAYS },
    { "blk.%d.ssm_alpha.weight", QN_LAYER_W(recur.alpha), .cols = qn_dim_embd, .rows = { dim_rate },
      .required = QN_ALWAYS },
    { "blk.%d.ssm_norm.weight", QN_LAYER_V(recur.norm), .rows = { dim_head }, .required = QN_ALWAYS },
    { "blk.%d.ssm_out.weight", QN_LAYER_W(recur.out), .cols = qn_dim_inner, .rows = { qn_dim_embd }, .required = QN_ALWAYS },
};

static qn_status check(const qn_net *net, qn_layer *l, int32_t i, qn_err *err)
{
    const qn_layer_recur *r = &l->recur;
    if (r->d_inner % r->n_dt || r->n_dt % r->n_group)
        return qn_fail(err, QN_ERR_FORMAT, "layer %d: an inner size of %d does not divide into %d heads in %d groups", i, r->d_inner, r->n_dt, r->n_group);
    if (dim_conv(net, l) > 1 << 24) return qn_fail(err, QN_ERR_UNSUPPORTED, "layer %d: %d keys of %d floats are too many", i, r->n_group, r->d_state);
    l->state_floats = qn_conv_state_floats(dim_conv(net, l), r->n_taps) + qn_scan_state_floats(r->n_dt, r->d_inner / r->n_dt, r->d_state);
    return QN_OK;
}

/* Where beta and the step of each head are: in registers of their own, or, for each key head, its heads' betas and then their steps. */
static void find_rates(const qn_layer *l, qn_scan_stage_args *a)
{
    const qn_layer_recur *r = &l->recur;
    const int32_t per = r->n_dt / r->n_group;
    const bool by_key = r->by_key;
    a->beta = (qn_head_cols){ { QN_REG_K, 0 }, per, by_key ? 2 * per : per };
    a->step = a->beta;
    a->step.first = by_key ? (qn_cols){ QN_REG_K, per } : (qn_cols){ QN_REG_T, 0 };
}

static void plan(const qn_net *net, const qn_layer *l, int32_t i_layer, qn_plan *p, const qn_input *in)
{
    const qn_layer_recur *r = &l->recur;
    const bool by_key = r->by_key;
    const qn_mat mats[] = {
        { .w = &r->in, .out = QN_REG_Q }, { .w = &r->z, .out = QN_REG_G }, { .w = &r->beta, .out = QN_REG_K }, { .w = &r->alpha, .out = QN_REG_T },
    };
    qn_scan_stage_args scan = {
        .n_head = r->n_dt, .n_key_head = r->n_group, .d_k = r->d_state, .d_v = r->d_inner / r->n_dt, .spread = by_key,
        .q = { QN_REG_V, 0 }, .k = { QN_REG_V, dim_keys(l) }, .v = { QN_REG_V, 2 * dim_keys(l) }, .qk_eps = net->norm_eps, .delta = true,
        .step_bias = r->dt_b.w, .a = r->a.w, .norm = { .kind = QN_NORM_RMS, .eps = net->norm_eps, .w = r->norm.w },
        .gate = { QN_REG_G, 0 }, .out = { QN_REG_O, 0 }, .i_state = i_layer, .state_at = qn_conv_state_floats(dim_conv(net, l), r->n_taps),
    };
    find_rates(l, &scan);
    qn_plan_matmul(p, "delta in", in, mats, by_key ? 3 : 4, QN_UNARY_NONE);
    qn_plan_conv(p, &(qn_conv_stage_args){
        .in = { QN_REG_Q, 0 }, .out = { QN_REG_V, 0 }, .n_channels = dim_conv(net, l), .n_taps = r->n_taps, .w = r->conv.w, .silu = true,
        .i_state = i_layer,
    });
    qn_plan_scan(p, &scan);
    if (i_layer == net->n_layer - 1) qn_plan_only_outputs(p, QN_REG_O);
}

static void close(const qn_net *net, const qn_layer *l, qn_plan *p, const qn_close_to *to)
{
    (void)net;
    const qn_input o = qn_plan_rows(QN_REG_O, l->recur.d_inner);
    qn_plan_close(p, "delta out", &o, &l->recur.out, NULL, to);
}

const qn_part qn_mix_delta = {
    .name = "gated delta net",
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .check = check,
    .plan = plan,
    .close = close,
};

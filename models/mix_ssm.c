#include "models/model.h"

/* State spaces with one decay a head (Dao and Gu 2024, "Mamba-2"): heads with a matrix as memory; groups of heads share keys (B) and queries (C). */

#define AT(field) offsetof(qn_layer, recur.field)
static const qn_key_row keys[] = {
    { "ssm.conv_kernel", QN_KEY_LAYER, AT(n_taps), true, 1, QN_MAX_TAPS },
    { "ssm.inner_size", QN_KEY_LAYER, AT(d_inner), true, 1, 1 << 20 },
    { "ssm.state_size", QN_KEY_LAYER, AT(d_state), true, 1, QN_MAX_STATE },
    { "ssm.time_step_rank", QN_KEY_LAYER, AT(n_dt), true, 1, 1 << 16 },
    { "ssm.group_count", QN_KEY_LAYER, AT(n_group), true, 1, 1 << 16 },
};

static int64_t dim_conv(const qn_net *net, const qn_layer *l) { (void)net; return l->recur.d_inner + 2 * (int64_t)l->recur.n_group * l->recur.d_state; }
static int64_t dim_in(const qn_net *net, const qn_layer *l) { return l->recur.d_inner + dim_conv(net, l) + l->recur.n_dt; }
static int64_t dim_group(const qn_net *net, const qn_layer *l) { (void)net; return l->recur.d_inner / l->recur.n_group; }
static int64_t dim_groups(const qn_net *net, const qn_layer *l) { (void)net; return l->recur.n_group; }

static const qn_tensor_row tensors[] = {
    { "blk.%d.ssm_in.weight", QN_LAYER_W(recur.in), .cols = qn_dim_embd, .rows = { dim_in }, .required = QN_ALWAYS },
    { "blk.%d.ssm_conv1d.weight", QN_LAYER_V(recur.conv), .rows = { qn_dim_taps }, .slices = dim_conv, .across = true, .required = QN_ALWAYS },
    { "blk.%d.ssm_conv1d.bias", QN_LAYER_V(recur.conv_b), .rows = { dim_conv } },
    { "blk.%d.ssm_dt.bias", QN_LAYER_V(recur.dt_b), .rows = { qn_dim_dt }, .required = QN_ALWAYS },
    { "blk.%d.ssm_a", QN_LAYER_V(recur.a), .rows = { qn_dim_dt }, .required = QN_ALWAYS },
    { "blk.%d.ssm_d", QN_LAYER_V(recur.d), .rows = { qn_dim_dt }, .required = QN_ALWAYS },
    { "blk.%d.ssm_norm.weight", QN_LAYER_V(recur.norm), .rows = { dim_group }, .slices = dim_groups },
    { "blk.%d.ssm_out.weight", QN_LAYER_W(recur.out), .cols = qn_dim_inner, .rows = { qn_dim_embd }, .required = QN_ALWAYS },
};

static qn_status check(const qn_net *net, qn_layer *l, int32_t i, qn_err *err)
{
    const qn_layer_recur *r = &l->recur;
    if (r->d_inner % r->n_dt || r->d_inner % r->n_group || r->n_dt % r->n_group)
        return qn_fail(err, QN_ERR_FORMAT, "layer %d: an inner size of %d does not divide into %d heads in %d groups", i, r->d_inner, r->n_dt, r->n_group);
    if (dim_conv(net, l) > 1 << 24) return qn_fail(err, QN_ERR_UNSUPPORTED, "layer %d: %d groups of %d floats are too many", i, r->n_group, r->d_state);
    l->state_floats = qn_conv_state_floats(dim_conv(net, l), r->n_taps) + qn_scan_state_floats(r->n_dt, r->d_inner / r->n_dt, r->d_state);
    return QN_OK;
}

/* Beside attention, whose registers are in use until the last step of both. */
typedef struct ssm_regs {
    qn_reg in, conv, out;
} ssm_regs;

static bool is_beside(const qn_layer *l)
{
    return l->mixer != &qn_mix_ssm;
}

static ssm_regs regs_of(const qn_layer *l)
{
    return is_beside(l) ? (ssm_regs){ QN_REG_G, QN_REG_S, QN_REG_R } : (ssm_regs){ QN_REG_Q, QN_REG_V, QN_REG_O };
}

static void plan(const qn_net *net, const qn_layer *l, int32_t i_layer, qn_plan *p, const qn_input *in)
{
    const qn_layer_recur *r = &l->recur;
    const ssm_regs at = regs_of(l);
    const int64_t n_conv = dim_conv(net, l), n_key = (int64_t)r->n_group * r->d_state;
    qn_plan_matmul(p, "ssm in", in, &(qn_mat){ .w = &r->in, .out = at.in }, 1, QN_UNARY_NONE);
    qn_plan_conv(p, &(qn_conv_stage_args){
        .in = { at.in, r->d_inner }, .out = { at.conv, 0 }, .n_channels = n_conv, .n_taps = r->n_taps, .w = r->conv.w, .bias = r->conv_b.w,
        .silu = true, .i_state = i_layer,
    });
    qn_plan_scan(p, &(qn_scan_stage_args){
        .n_head = r->n_dt, .n_key_head = r->n_group, .d_k = r->d_state, .d_v = r->d_inner / r->n_dt, .spread = true,
        .q = { at.conv, r->d_inner + n_key }, .k = { at.conv, r->d_inner }, .v = { at.conv, 0 },
        .step = { { at.in, r->d_inner + n_conv }, r->n_dt, 0 }, .step_bias = r->dt_b.w, .a = r->a.w, .skip = r->d.w,
        .gate = { at.in, 0 }, .out = { at.out, 0 }, .i_state = i_layer, .state_at = qn_conv_state_floats(n_conv, r->n_taps),
    });
    if (is_beside(l)) p->waiting = at.out;
    else if (i_layer == net->n_layer - 1) qn_plan_only_outputs(p, at.out);
}

static void close(const qn_net *net, const qn_layer *l, qn_plan *p, const qn_close_to *to)
{
    const qn_layer_recur *r = &l->recur;
    qn_input o = qn_plan_rows(regs_of(l).out, r->d_inner);
    if (r->norm.n) o.pre = (qn_norm){ .kind = QN_NORM_RMS, .eps = net->norm_eps, .w = r->norm.w, .n_groups = r->n_group };
    qn_plan_close(p, "ssm out", &o, &r->out, NULL, to);
}

const qn_part qn_mix_ssm = {
    .name = "state spaces",
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .check = check,
    .plan = plan,
    .close = close,
};

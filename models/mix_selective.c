#include "models/model.h"

/* Selective state spaces (Gu and Dao 2023, "Mamba"): every channel of the inner stream has a state of its own. */

#define AT(field) offsetof(qn_layer, recur.field)
static const qn_key_row keys[] = {
    { "ssm.conv_kernel", QN_KEY_LAYER, AT(n_taps), true, 1, QN_MAX_TAPS },
    { "ssm.inner_size", QN_KEY_LAYER, AT(d_inner), true, 1, 1 << 20 },
    { "ssm.state_size", QN_KEY_LAYER, AT(d_state), true, 1, QN_MAX_STATE },
    { "ssm.time_step_rank", QN_KEY_LAYER, AT(n_dt), true, 1, 1 << 16 },
    { "ssm.dt_b_c_rms", QN_KEY_LAYER, AT(norms_steps), false, 0, 1 },
};

static int64_t dim_in(const qn_net *net, const qn_layer *l) { (void)net; return 2 * (int64_t)l->recur.d_inner; }
static int64_t dim_x(const qn_net *net, const qn_layer *l) { (void)net; return l->recur.n_dt + 2 * (int64_t)l->recur.d_state; }

static const qn_tensor_row tensors[] = {
    { "blk.%d.ssm_in.weight", QN_LAYER_W(recur.in), .cols = qn_dim_embd, .rows = { dim_in }, .required = QN_ALWAYS },
    { "blk.%d.ssm_conv1d.weight", QN_LAYER_V(recur.conv), .rows = { qn_dim_taps }, .slices = qn_dim_inner, .across = true, .required = QN_ALWAYS },
    { "blk.%d.ssm_conv1d.bias", QN_LAYER_V(recur.conv_b), .rows = { qn_dim_inner } },
    { "blk.%d.ssm_x.weight", QN_LAYER_W(recur.x), .cols = qn_dim_inner, .rows = { dim_x }, .required = QN_ALWAYS },
    { "blk.%d.ssm_dt.weight", QN_LAYER_W(recur.dt), .cols = qn_dim_dt, .rows = { qn_dim_inner }, .required = QN_ALWAYS },
    { "blk.%d.ssm_dt.bias", QN_LAYER_V(recur.dt_b), .rows = { qn_dim_inner }, .required = QN_ALWAYS },
    { "blk.%d.ssm_a", QN_LAYER_V(recur.a), .rows = { qn_dim_state }, .slices = qn_dim_inner, .across = true, .required = QN_ALWAYS },
    { "blk.%d.ssm_d", QN_LAYER_V(recur.d), .rows = { qn_dim_inner }, .required = QN_ALWAYS },
    { "blk.%d.ssm_dt_norm.weight", QN_LAYER_V(recur.dt_norm), .rows = { qn_dim_dt } },
    { "blk.%d.ssm_b_norm.weight", QN_LAYER_V(recur.b_norm), .rows = { qn_dim_state } },
    { "blk.%d.ssm_c_norm.weight", QN_LAYER_V(recur.c_norm), .rows = { qn_dim_state } },
    { "blk.%d.ssm_out.weight", QN_LAYER_W(recur.out), .cols = qn_dim_inner, .rows = { qn_dim_embd }, .required = QN_ALWAYS },
};

static qn_status check(const qn_net *net, qn_layer *l, int32_t i, qn_err *err)
{
    const qn_layer_recur *r = &l->recur;
    (void)net;
    (void)i;
    (void)err;
    l->state_floats = qn_conv_state_floats(r->d_inner, r->n_taps) + qn_scan_state_floats(1, r->d_inner, r->d_state);
    return QN_OK;
}

/* A norm of the step, B or C: with weights, or plain where the model says so. */
static qn_norm small_norm(const qn_net *net, const qn_layer *l, const qn_vector *w)
{
    return (qn_norm){ .kind = w->n || l->recur.norms_steps ? QN_NORM_RMS : QN_NORM_NONE, .eps = net->norm_eps, .w = w->w };
}

static void plan(const qn_net *net, const qn_layer *l, int32_t i_layer, qn_plan *p, const qn_input *in)
{
    const qn_layer_recur *r = &l->recur;
    qn_input step = qn_plan_rows(QN_REG_K, r->n_dt);
    const qn_input x = qn_plan_rows(QN_REG_V, r->d_inner);
    step.pre = small_norm(net, l, &r->dt_norm);
    qn_plan_matmul(p, "ssm in", in, &(qn_mat){ .w = &r->in, .out = QN_REG_Q }, 1, QN_UNARY_NONE);
    qn_plan_conv(p, &(qn_conv_stage_args){
        .in = { QN_REG_Q, 0 }, .out = { QN_REG_V, 0 }, .n_channels = r->d_inner, .n_taps = r->n_taps, .w = r->conv.w, .bias = r->conv_b.w,
        .silu = true, .i_state = i_layer,
    });
    qn_plan_matmul(p, "ssm x", &x, &(qn_mat){ .w = &r->x, .out = QN_REG_K }, 1, QN_UNARY_NONE);
    qn_plan_matmul(p, "ssm dt", &step, &(qn_mat){ .w = &r->dt, .bias = r->dt_b.w, .out = QN_REG_T }, 1, QN_UNARY_NONE);
    qn_plan_selective(p, &(qn_selective_stage_args){
        .n_channels = r->d_inner, .d_state = r->d_state, .a = r->a.w, .skip = r->d.w, .x = { QN_REG_V, 0 }, .dt = { QN_REG_T, 0 },
        .gate = { QN_REG_Q, r->d_inner }, .out = { QN_REG_O, 0 }, .b = { QN_REG_K, r->n_dt }, .c = { QN_REG_K, r->n_dt + r->d_state },
        .b_norm = small_norm(net, l, &r->b_norm), .c_norm = small_norm(net, l, &r->c_norm), .i_state = i_layer,
        .state_at = qn_conv_state_floats(r->d_inner, r->n_taps),
    });
    if (i_layer == net->n_layer - 1) qn_plan_only_outputs(p, QN_REG_O);
}

static void close(const qn_net *net, const qn_layer *l, qn_plan *p, const qn_close_to *to)
{
    (void)net;
    const qn_input o = qn_plan_rows(QN_REG_O, l->recur.d_inner);
    qn_plan_close(p, "ssm out", &o, &l->recur.out, NULL, to);
}

const qn_part qn_mix_selective = {
    .name = "selective state spaces",
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .check = check,
    .plan = plan,
    .close = close,
};

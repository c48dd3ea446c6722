#include "models/model.h"

/* Several residual streams, of which a block works on one (AltUp; Baykal et al. 2023): what it will make of all is predicted before the block and corrected
 * after it. The first stream is the embedding, the others are its projections. */

static const qn_key_row keys[] = {
    { "altup.num_inputs", QN_KEY_NET, offsetof(qn_net, streams.n), false, 2, QN_MAX_STREAMS },
    { "altup.active_idx", QN_KEY_NET, offsetof(qn_net, streams.i_active), false, 0, QN_MAX_STREAMS - 1 },
};

static int64_t dim_streams(const qn_net *net, const qn_layer *l) { (void)l; return net->streams.n; }
static int64_t dim_pairs(const qn_net *net, const qn_layer *l) { (void)l; return net->streams.n * net->streams.n; }

#define AT(field) QN_LAYER_V(altup.field)
static const qn_tensor_row tensors[] = {
    { "blk.%d.altup_router_norm.weight", AT(router_norm), .rows = { qn_dim_embd }, .required = QN_ALWAYS },
    { "blk.%d.altup_router.weight", AT(router), .rows = { qn_dim_embd }, .slices = dim_streams, .required = QN_ALWAYS },
    { "blk.%d.altup_predict_coef.weight", AT(predict), .rows = { dim_streams }, .slices = dim_pairs, .required = QN_ALWAYS },
    { "blk.%d.altup_correct_coef.weight", AT(correct), .rows = { dim_streams }, .slices = dim_streams, .required = QN_ALWAYS },
    { "blk.%d.altup_correct_scale.weight", AT(scale), .rows = { qn_dim_embd } },
};

static qn_status check(const qn_net *net, qn_layer *l, int32_t i, qn_err *err)
{
    (void)l, (void)i;
    if (net->streams.i_active < net->streams.n) return QN_OK;
    return qn_fail(err, QN_ERR_FORMAT, "%s.altup.active_idx is %d, and %s.altup.num_inputs %d", net->arch->name, net->streams.i_active, net->arch->name,
                   net->streams.n);
}

static qn_streams streams_of(const qn_net *net)
{
    return (qn_streams){ .n = net->streams.n, .i_active = net->streams.i_active, .width = net->n_embd };
}

static qn_stream_router router_of(const qn_net *net, const qn_layer *l, const qn_vector *mix)
{
    return (qn_stream_router){ .norm = qn_net_norm(net, &l->altup.router_norm, NULL), .router = l->altup.router.w, .mix = mix->w };
}

static void plan(const qn_net *net, const qn_layer *l, int32_t i_layer, qn_plan *p, const qn_input *in)
{
    (void)i_layer, (void)in;
    const qn_streams u = streams_of(net);
    const qn_stream_router by = router_of(net, l, &l->altup.predict);
    qn_plan_predict(p, &u, &by);
}

static void close(const qn_net *net, const qn_layer *l, qn_plan *p, const qn_close_to *to)
{
    (void)to;
    const qn_streams u = streams_of(net);
    const qn_stream_router by = router_of(net, l, &l->altup.correct);
    const qn_norm post = qn_net_norm(net, &l->ffn_post_norm, NULL);
    qn_plan_correct(p, &u, &by, &post, l->altup.scale.w);
}

void qn_altup_open(const qn_net *net, qn_plan *p)
{
    const qn_streams u = streams_of(net);
    qn_plan_by_head(p, "streams from x", &(qn_by_head_args){
        .w = &net->streams.from_x, .in = p->x, .out = QN_REG_U, .out_at = u.width, .out_stride = u.width, .scale = 1,
    });
    qn_plan_streams_open(p, &u);
}

void qn_altup_spread(const qn_net *net, const qn_layer *l, qn_plan *p)
{
    const qn_streams u = streams_of(net);
    const qn_norm norm = qn_net_norm(net, &l->rows.norm, NULL);
    qn_plan_spread(p, &u, &norm);
}

void qn_altup_close(const qn_net *net, qn_plan *p)
{
    const qn_streams u = streams_of(net);
    qn_plan_by_head(p, "streams to x", &(qn_by_head_args){
        .w = &net->streams.to_x, .in = QN_REG_U, .in_at = u.width, .in_stride = u.width, .out = QN_REG_F, .out_at = u.width, .out_stride = u.width,
        .scale = 1,
    });
    qn_plan_streams_close(p, &u);
}

const qn_part qn_around_altup = {
    .name = "several residual streams",
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .check = check,
    .plan = plan,
    .close = close,
};

#include "models/model.h"

#include "src/ops/experts.h"

#include <math.h>

/* A mixture of experts (src/ops/experts.h), with or without one that every token takes beside those that its router chooses. What differs between
 * architectures is the qn_expert_rules of each. */

#define AT(field) offsetof(qn_layer, x.field)
#define NET(field) offsetof(qn_net, experts.field)
static const qn_key_row keys[] = {
    { "expert_count", QN_KEY_LAYER, AT(n), true, 1, QN_MAX_EXPERTS },
    { "expert_used_count", QN_KEY_LAYER, AT(n_used), true, 1, QN_MAX_EXPERTS },
    { "feed_forward_length", QN_KEY_LAYER, offsetof(qn_layer, n_ff), false, 0, 1 << 24 },
    { "expert_feed_forward_length", QN_KEY_LAYER, AT(n_ff), false, 0, 1 << 24 },
    { "expert_shared_feed_forward_length", QN_KEY_LAYER, AT(n_ff_shared), false, 0, 1 << 24 },
    { "expert_shared_count", QN_KEY_LAYER, AT(n_shared), false, 0, QN_MAX_EXPERTS },
    { "expert_group_count", QN_KEY_NET, NET(n_groups), false, 0, QN_MAX_EXPERTS },
    { "expert_group_used_count", QN_KEY_NET, NET(n_groups_used), false, 0, QN_MAX_EXPERTS },
    { "expert_gating_func", QN_KEY_NET, NET(gate), false, 0, 15 },
    { "expert_weights_norm", QN_KEY_NET, NET(normalised), false, 0, 1 },
    { "expert_weights_scale", QN_KEY_FLOAT, NET(scale), false, 0, 0 },
    { "leading_dense_block_count", QN_KEY_HOOK, 0, false, 0, 0 },
    { "interleave_moe_layer_step", QN_KEY_HOOK, 0, false, 0, 0 },
};

static int64_t dim_experts(const qn_net *net, const qn_layer *l) { (void)net; return l->x.n; }
static int64_t dim_ff(const qn_net *net, const qn_layer *l) { (void)net; return l->x.n_ff; }
static int64_t dim_shared(const qn_net *net, const qn_layer *l) { (void)net; return l->x.n_ff_shared; }
static int64_t dim_fused(const qn_net *net, const qn_layer *l) { (void)net; return l->x.n_ff_shared ? l->x.n_ff_shared : QN_NO_TENSOR; }

#define W(field) QN_LAYER_W(x.field)
#define V(field) QN_LAYER_V(x.field)
#define GATE_UP .at = { AT(gate), AT(up) }, .n_at = 2, .rows = { dim_ff, dim_ff }
#define SHARED_GATE_UP .at = { AT(shared_gate), AT(shared_up) }, .n_at = 2, .rows = { dim_fused, dim_fused }
static const qn_tensor_row tensors[] = {
    { "blk.%d.ffn_gate_inp.weight", W(router), .cols = qn_dim_embd, .rows = { dim_experts }, .required = QN_ALWAYS },
    { "blk.%d.ffn_gate_inp.bias", V(router_b), .rows = { dim_experts }, .required = QN_F_EXPERT_BIAS },
    { "blk.%d.exp_probs_b.bias", V(choice_b), .rows = { dim_experts } },
    { "blk.%d.exp_probs_b", V(choice_b), .rows = { dim_experts } },
    { "blk.%d.ffn_gate_up_exps.weight", GATE_UP, .cols = qn_dim_embd, .only = QN_F_EXPERTS_FUSED, .required = QN_ALWAYS, .slices = dim_experts,
      .on_use = true },
    { "blk.%d.ffn_gate_exps.weight", W(gate), .cols = qn_dim_embd, .rows = { dim_ff }, .unless = QN_F_EXPERTS_FUSED | QN_F_NO_GATE,
      .required = QN_ALWAYS, .slices = dim_experts, .on_use = true },
    { "blk.%d.ffn_up_exps.weight", W(up), .cols = qn_dim_embd, .rows = { dim_ff }, .unless = QN_F_EXPERTS_FUSED, .required = QN_ALWAYS,
      .slices = dim_experts, .on_use = true },
    { "blk.%d.ffn_down_exps.weight", W(down), .cols = dim_ff, .rows = { qn_dim_embd }, .required = QN_ALWAYS, .slices = dim_experts, .on_use = true },
    { "blk.%d.ffn_gate_exps.bias", V(gate_b), .rows = { dim_ff }, .unless = QN_F_EXPERTS_FUSED | QN_F_NO_GATE, .required = QN_F_EXPERT_BIAS,
      .slices = dim_experts },
    { "blk.%d.ffn_up_exps.bias", V(up_b), .rows = { dim_ff }, .unless = QN_F_EXPERTS_FUSED, .required = QN_F_EXPERT_BIAS, .slices = dim_experts },
    { "blk.%d.ffn_down_exps.bias", V(down_b), .rows = { qn_dim_embd }, .required = QN_F_EXPERT_BIAS, .slices = dim_experts },
    { "blk.%d.ffn_gate_inp.scale", V(router_norm), .rows = { qn_dim_embd }, .only = QN_F_FF_BESIDE, .required = QN_ALWAYS },
    { "blk.%d.pre_ffw_norm_2.weight", V(norm), .rows = { qn_dim_embd }, .only = QN_F_FF_BESIDE, .required = QN_ALWAYS },
    { "blk.%d.post_ffw_norm_1.weight", V(other_post_norm), .rows = { qn_dim_embd }, .only = QN_F_FF_BESIDE, .required = QN_ALWAYS },
    { "blk.%d.post_ffw_norm_2.weight", V(post_norm), .rows = { qn_dim_embd }, .only = QN_F_FF_BESIDE, .required = QN_ALWAYS },
    { "blk.%d.ffn_down_exps.scale", V(down_scale), .rows = { dim_experts }, .only = QN_F_FF_BESIDE },
    { "blk.%d.ffn_gate_inp_shexp.weight", W(shared_router), .cols = qn_dim_embd, .rows = { qn_dim_one }, .only = QN_F_SHARED_GATE, .required = QN_ALWAYS },
    { "blk.%d.ffn_gate_shexp.weight", W(shared_gate), .cols = qn_dim_embd, .rows = { dim_shared }, .only = QN_F_SHARED_EXPERT,
      .unless = QN_F_NO_GATE | QN_F_SHARED_FUSED | QN_F_SHARED_DENSE, .required = QN_ALWAYS },
    { "blk.%d.ffn_up_shexp.weight", W(shared_up), .cols = qn_dim_embd, .rows = { dim_shared }, .only = QN_F_SHARED_EXPERT,
      .unless = QN_F_SHARED_FUSED | QN_F_SHARED_DENSE, .required = QN_ALWAYS },
    { "blk.%d.ffn_up_shexp.weight", SHARED_GATE_UP, .cols = qn_dim_embd, .only = QN_F_SHARED_FUSED, .required = QN_ALWAYS },
    { "blk.%d.ffn_down_shexp.weight", W(shared_down), .cols = dim_shared, .rows = { qn_dim_embd }, .only = QN_F_SHARED_EXPERT,
      .unless = QN_F_SHARED_DENSE, .required = QN_ALWAYS },
    { "blk.%d.ffn_gate.weight", W(shared_gate), .cols = qn_dim_embd, .rows = { dim_shared }, .only = QN_F_SHARED_DENSE, .required = QN_ALWAYS },
    { "blk.%d.ffn_up.weight", W(shared_up), .cols = qn_dim_embd, .rows = { dim_shared }, .only = QN_F_SHARED_DENSE, .required = QN_ALWAYS },
    { "blk.%d.ffn_down.weight", W(shared_down), .cols = dim_shared, .rows = { qn_dim_embd }, .only = QN_F_SHARED_DENSE, .required = QN_ALWAYS },
};

static int32_t shared_width(const qn_expert_rules *rules, const qn_layer *l)
{
    const qn_layer_experts *x = &l->x;
    const int32_t each = x->n_ff_shared ? x->n_ff_shared : x->n_ff;
    if (x->n_ff_shared && !(rules->shared & QN_SHARED_EACH)) return x->n_ff_shared;
    if (!(rules->shared & QN_SHARED_BY_COUNT)) return rules->shared & QN_SHARED_AS_DENSE ? l->n_ff : rules->shared & QN_SHARED_ONE ? x->n_ff : 0;
    if (x->n_shared == 0 && rules->shared & QN_SHARED_ONE) return x->n_ff;
    return (int64_t)x->n_shared * each <= 1 << 24 ? x->n_shared * each : -1;
}

static qn_status check(const qn_net *net, qn_layer *l, int32_t i, qn_err *err)
{
    qn_layer_experts *x = &l->x;
    const qn_expert_rules *rules = net->arch->experts;
    const qn_net_experts *e = &net->experts;
    if (x->n_used > x->n) return qn_fail(err, QN_ERR_FORMAT, "layer %d uses %d of %d experts", i, x->n_used, x->n);
    if (e->n_groups > 1 && (x->n % e->n_groups || e->n_groups_used < 1 || e->n_groups_used > e->n_groups ||
                            x->n_used > (int64_t)x->n / e->n_groups * e->n_groups_used))
        return qn_fail(err, QN_ERR_FORMAT, "layer %d: %d of %d experts do not come from %d of %d groups", i, x->n_used, x->n, e->n_groups_used, e->n_groups);
    if (rules->heeds & QN_HEED_GATE && (e->gate < 0 || e->gate > QN_GATE_SOFTMAX_CHOSEN))
        return qn_fail(err, QN_ERR_UNSUPPORTED, "%s.expert_gating_func is %d; quern knows 1 to %d", net->arch->name, e->gate, QN_GATE_SOFTMAX_CHOSEN);
    if (x->n_ff == 0 || rules->ff_as_dense) x->n_ff = rules->divides_ff ? l->n_ff / x->n_used : l->n_ff;
    x->n_ff_shared = l->features & QN_F_SHARED_DENSE ? l->n_ff : shared_width(rules, l);
    if (x->n_ff < 1 || x->n_ff_shared < 0)
        return qn_fail(err, QN_ERR_FORMAT, "layer %d has experts of %d rows, and a shared one of %d", i, x->n_ff, x->n_ff_shared);
    if (x->n_ff_shared) l->features |= QN_F_SHARED_EXPERT;
    return QN_OK;
}

void qn_layer_experts_look(qn_layer *l, const qn_file *file, int32_t i_layer)
{
    if (qn_net_has_tensor(file, "blk.%d.ffn_gate_up_exps.weight", i_layer)) l->features |= QN_F_EXPERTS_FUSED;
}

qn_status qn_layers_experts(qn_net *net, const qn_file *file, qn_err *err)
{
    int32_t n = 0, n_dense = 0, step = 1;
    QN_TRY(qn_net_read_i32(net, file, "expert_count", 0, QN_MAX_EXPERTS, &n, err));
    QN_TRY(qn_net_read_i32(net, file, "leading_dense_block_count", 0, QN_MAX_LAYERS, &n_dense, err));
    QN_TRY(qn_net_read_i32(net, file, "interleave_moe_layer_step", 0, QN_MAX_LAYERS, &step, err));
    if (step == 0) step = 1;
    if (n <= 1 && net->arch->ff == &qn_ff_dense) return QN_OK;
    for (int32_t i = 0; i < net->n_layer; i++) {
        qn_layer *l = &net->layer[i];
        l->ff = i < n_dense || (i + 1) % step ? &qn_ff_dense : &qn_ff_experts;
        qn_layer_experts_look(l, file, i);
    }
    return QN_OK;
}

qn_status qn_layers_experts_by_tensor(qn_net *net, const qn_file *file, qn_err *err)
{
    QN_TRY(qn_layers_experts(net, file, err));
    for (int32_t i = 0; i < net->n_layer; i++)
        if (qn_net_has_tensor(file, "blk.%d.ffn_gate.weight", i)) net->layer[i].ff = &qn_ff_dense;
    return QN_OK;
}

static qn_routing routing_of(const qn_net *net, const qn_layer *l)
{
    const qn_expert_rules *r = net->arch->experts;
    const qn_net_experts *e = &net->experts;
    return (qn_routing){
        .n_expert = l->x.n,
        .n_used = l->x.n_used,
        .n_groups = e->n_groups,
        .n_groups_used = e->n_groups_used,
        .gate = r->heeds & QN_HEED_GATE && e->gate ? (qn_gate_kind)e->gate : r->gate,
        .normalised = r->heeds & QN_HEED_NORM ? e->normalised : r->normalised,
        .scale = r->heeds & QN_HEED_SCALE && e->scale != 0 ? e->scale : 1,
        .logit_scale = l->x.router_norm.n ? 1 / sqrtf((float)net->n_embd) : 0,
        .logit_bias = l->x.router_b.w,
        .bias = l->x.choice_b.w,
        .expert_scale = l->x.down_scale.w,
    };
}

static qn_experts experts_of(const qn_net *net, const qn_layer *l)
{
    const qn_layer_experts *x = &l->x;
    return (qn_experts){
        .routing = routing_of(net, l),
        .gate = l->features & QN_F_NO_GATE ? NULL : &x->gate,
        .up = &x->up,
        .down = &x->down,
        .gate_b = x->gate_b.w,
        .up_b = x->up_b.w,
        .down_b = x->down_b.w,
        .most = l->most,
        .weighs_input = net->arch->experts->weighs_input,
    };
}

static void plan(const qn_net *net, const qn_layer *l, int32_t i_layer, qn_plan *p, const qn_input *in)
{
    (void)i_layer;
    const qn_layer_experts *x = &l->x;
    const qn_mat router[] = { { .w = &x->router, .out = QN_REG_R }, { .w = &x->shared_router, .out = QN_REG_S } };
    const qn_mat up = { .w = &x->shared_up, .out = QN_REG_G, .act = net->act };
    const qn_mat gate_up[] = { { .w = &x->shared_gate, .out = QN_REG_G, .most = l->most_shared }, { .w = &x->shared_up } };
    const qn_experts experts = experts_of(net, l);
    const bool is_routed = l->beside == &qn_mix_router;
    qn_input routed = *in;
    if (x->router_norm.n) routed.pre = qn_net_norm(net, &x->router_norm, NULL);
    if (!is_routed) qn_plan_matmul(p, "router", &routed, router, qn_weight_present(&x->shared_router) ? 2 : 1, QN_UNARY_NONE);
    const qn_input again = is_routed ? *in : qn_plan_again(in);
    if (l->features & QN_F_SHARED_EXPERT) {
        if (l->features & QN_F_NO_GATE) qn_plan_matmul(p, "shared up", &again, &up, 1, QN_UNARY_NONE);
        else qn_plan_matmul(p, "shared gate up", &again, gate_up, 2, net->act);
        qn_plan_join(p);
    }
    qn_plan_experts_up(p, &again, &experts, net->act);
}

static void close(const qn_net *net, const qn_layer *l, qn_plan *p, const qn_close_to *to)
{
    const qn_layer_experts *x = &l->x;
    const qn_experts experts = experts_of(net, l);
    const bool has_shared = l->features & QN_F_SHARED_EXPERT;
    const float together = has_shared && net->arch->experts->scale_with_shared != 0 ? net->arch->experts->scale_with_shared : 1;
    qn_close_to scaled = *to;
    scaled.scale = (to->post_norm ? 1 : to->scale) * together;
    qn_plan_experts_down(p, &experts, &scaled);
    if (!has_shared) return;
    const qn_input g = qn_plan_rows(QN_REG_G, x->n_ff_shared);
    const qn_mat down = { .w = &x->shared_down, .out = to->post_norm ? QN_REG_T : p->x, .adds = true, .scale = scaled.scale,
                          .gated = qn_weight_present(&x->shared_router), .gate = QN_REG_S };
    qn_plan_matmul(p, "shared down", &g, &down, 1, QN_UNARY_NONE);
}

const qn_part qn_ff_experts = {
    .name = "experts",
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .check = check,
    .plan = plan,
    .close = close,
};

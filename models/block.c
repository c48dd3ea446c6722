#include "models/model.h"

/* The transformer block that the architectures share, as stages. Pre-norm (Xiong et al. 2020), grouped queries (Ainslie et al. 2023), gated
 * feed-forward (Shazeer 2020); with QN_F_POST_NORM a second norm stands between each half's result and the residual stream. */

static qn_norm rms(const qn_net *net, const qn_vector *w)
{
    return (qn_norm){ .kind = w->n ? QN_NORM_RMS : QN_NORM_NONE, .eps = net->norm_eps, .w = w->w };
}

static qn_heads heads_of(const qn_net *net, const qn_layer *l, int32_t i_layer)
{
    return (qn_heads){
        .n_head = l->n_head,
        .n_head_kv = l->n_head_kv,
        .head_dim = l->head_dim,
        .head_dim_v = l->head_dim_v,
        .window = l->window,
        .i_rope = net->rope[l->i_rope].n_rot ? l->i_rope : -1,
        .i_kv = i_layer,
        .scale = net->attn_scale,
        .softcap = net->attn_softcap,
        .q_norm = rms(net, &l->q_norm),
        .k_norm = rms(net, &l->k_norm),
    };
}

/* The result of a half goes into the residual stream at once, or waits in T for its post-norm. */
static qn_mat closing(const qn_weight *w, const qn_vector *bias, bool has_post_norm)
{
    return (qn_mat){ .w = w, .bias = bias->w, .out = QN_REG_T, .add_to_x = !has_post_norm };
}

static void layer(const qn_net *net, qn_plan *p, int32_t i, const qn_norm *before)
{
    const qn_layer *l = &net->layer[i];
    const bool post = net->arch->features & QN_F_POST_NORM;
    const qn_norm attn_norm = rms(net, &l->attn_norm), attn_post = rms(net, &l->attn_post_norm), ffn_norm = rms(net, &l->ffn_norm);
    const qn_heads heads = heads_of(net, l, i);
    const qn_mat qkv[] = {
        { .w = &l->wq, .bias = l->bq.w, .out = QN_REG_Q },
        { .w = &l->wk, .bias = l->bk.w, .out = QN_REG_K },
        { .w = &l->wv, .bias = l->bv.w, .out = QN_REG_V },
    };
    const qn_mat gate_up[] = {
        { .w = &l->gate, .bias = l->bgate.w, .out = QN_REG_G },
        { .w = &l->up, .bias = l->bup.w, .out = QN_REG_U },
    };
    const qn_mat out = closing(&l->wo, &l->bo, post), down = closing(&l->down, &l->bdown, post);
    p->i_layer = i;
    if (before->kind != QN_NORM_NONE) qn_plan_add_norm(p, before, &attn_norm, net->n_embd);
    else qn_plan_norm(p, &attn_norm, net->n_embd);
    qn_plan_matmul(p, "qkv", qkv, 3);
    qn_plan_store(p, &heads);
    qn_plan_attend(p, &heads);
    qn_plan_rows(p, QN_REG_O, l->wo.n_cols);
    qn_plan_matmul(p, "attn out", &out, 1);
    if (post) qn_plan_add_norm(p, &attn_post, &ffn_norm, net->n_embd);
    else qn_plan_norm(p, &ffn_norm, net->n_embd);
    qn_plan_matmul(p, "gate up", gate_up, 2);
    qn_plan_glu(p, net->arch->features & QN_F_GELU ? QN_GLU_GELU : QN_GLU_SILU, l->n_ff);
    qn_plan_matmul(p, "down", &down, 1);
}

qn_status qn_net_plan(const qn_net *net, qn_plan *p, qn_err *err)
{
    *p = (qn_plan){ .i_layer = -1 };
    qn_rope ropes[QN_MAX_ROPES];
    for (int32_t i = 0; i < net->n_ropes; i++) {
        ropes[i] = net->rope[i];
        if (i == 0) ropes[i].factors = net->rope_factors.w;
    }
    qn_plan_embed(p, &net->embed, net->embed_scale);
    qn_plan_rope(p, ropes, net->n_ropes);
    qn_norm before = { 0 }; /* the norm after the last layer's feed-forward, which the next stage applies */
    for (int32_t i = 0; i < net->n_layer; i++) {
        layer(net, p, i, &before);
        before = rms(net, &net->layer[i].ffn_post_norm);
    }
    const qn_norm out_norm = rms(net, &net->out_norm);
    qn_plan_head(p, &before, &out_norm, net->n_embd, qn_net_head(net), net->logit_softcap, net->logit_scale);
    return qn_plan_finish(p, err);
}

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
    const qn_mat gate_up[] = { { .w = &l->gate, .bias = l->bgate.w, .out = QN_REG_G }, { .w = &l->up, .bias = l->bup.w } };
    p->i_layer = i;
    const qn_input x = qn_plan_normed(p, before, &attn_norm, net->n_embd);
    qn_plan_matmul(p, "qkv", &x, qkv, 3, QN_GLU_NONE);
    qn_plan_store(p, &heads);
    if (i == net->n_layer - 1) qn_plan_only_outputs(p);
    qn_plan_attend(p, &heads);
    const qn_input o = qn_plan_rows(QN_REG_O, l->wo.n_cols);
    qn_plan_close(p, "attn out", &o, &l->wo, l->bo.w, post);
    const qn_input y = qn_plan_normed(p, &attn_post, &ffn_norm, net->n_embd);
    qn_plan_matmul(p, "gate up", &y, gate_up, 2, net->arch->features & QN_F_GELU ? QN_GLU_GELU : QN_GLU_SILU);
    const qn_input g = qn_plan_rows(QN_REG_G, l->n_ff);
    qn_plan_close(p, "down", &g, &l->down, l->bdown.w, post);
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
    const qn_input x = qn_plan_normed(p, &before, &out_norm, net->n_embd);
    qn_plan_head(p, &x, qn_net_head(net), net->logit_softcap, net->logit_scale);
    return qn_plan_finish(p, err);
}

#include "models/model.h"

/* The transformer block as stages. One half after the other, each on its own norm of the residual stream (pre-norm, Xiong et al. 2020), or both on the
 * same stream (parallel, Wang and Komatsuzaki 2021); post-norms stand between a half's result and the residual stream. */

qn_norm qn_net_norm(const qn_net *net, const qn_vector *w, const qn_vector *b)
{
    const qn_norm_kind kind = net->features & QN_F_LAYER_NORM ? QN_NORM_LAYER : QN_NORM_RMS;
    const bool is_there = w->n || net->features & QN_F_NORM_PLAIN;
    return (qn_norm){ .kind = is_there ? kind : QN_NORM_NONE, .eps = net->norm_eps, .w = w->w, .b = b ? b->w : NULL };
}

static qn_norm pre_norm(const qn_net *net, const qn_layer *l, const qn_vector *w, const qn_vector *b)
{
    return l->features & QN_F_NO_PRE_NORM ? (qn_norm){ 0 } : qn_net_norm(net, w, b);
}

static qn_norm post_norm(const qn_net *net, const qn_layer *l, const qn_vector *w)
{
    return l->features & QN_F_POST_NORM ? qn_net_norm(net, w, NULL) : (qn_norm){ 0 };
}

/* Of the first transformers: the residual stream itself is normed (post-norm, Vaswani et al. 2017). */
static void norm_after(const qn_net *net, const qn_layer *l, qn_plan *p, const qn_vector *w, const qn_vector *b)
{
    const qn_norm norm = qn_net_norm(net, w, b);
    if (l->features & QN_F_NORM_AFTER) qn_plan_norm(p, "norm", p->x, &norm, net->n_embd);
}

/* What a layer leaves for the stage after it to apply: the norm of T, that is added to the residual stream then, and a factor of the sum. */
typedef struct left_over {
    qn_norm norm;
    float scale;
} left_over;

static qn_input take(const qn_net *net, qn_plan *p, const left_over *before, const qn_norm *pre)
{
    qn_input x = qn_plan_normed(p, &before->norm, pre, net->n_embd);
    x.scale = before->scale;
    return x;
}

/* Two feed-forwards of the same rows, each between norms of its own; V is free behind the mixer. */
static void two_feed_forwards(const qn_net *net, const qn_layer *l, int32_t i, qn_plan *p, const qn_input *y)
{
    const qn_norm other = qn_net_norm(net, &l->x.other_post_norm, NULL), own = qn_net_norm(net, &l->x.post_norm, NULL);
    const qn_close_to v = { .post_norm = true, .aside = QN_REG_V, .scale = 1 }, t = { .post_norm = true, .scale = 1 };
    qn_input again = qn_plan_again(y);
    again.pre = qn_net_norm(net, &l->x.norm, NULL);
    l->ff->plan(net, l, i, p, y);
    l->ff->close(net, l, p, &v);
    l->ff_beside->plan(net, l, i, p, &again);
    l->ff_beside->close(net, l, p, &t);
    qn_plan_sum(p, QN_REG_T, &own, QN_REG_V, &other, net->n_embd);
}

/* The mixer's result, in T, and its input make a sum that is normed; that sum and the input again (Günther et al. 2023, the models for code). */
static void norm_twice(const qn_net *net, const qn_layer *l, qn_plan *p)
{
    const qn_norm none = { 0 }, first = qn_net_norm(net, &l->attn_post_norm, &l->attn_post_norm_b),
                  second = qn_net_norm(net, &l->again_norm, &l->again_norm_b);
    qn_plan_sum(p, QN_REG_T, &none, p->x, &none, net->n_embd);
    qn_plan_sum(p, p->x, &none, QN_REG_T, &first, net->n_embd);
    qn_plan_norm(p, "norm again", p->x, &second, net->n_embd);
}

/* What the second feed-forward will read: the stream as it comes into the block, normed, in a register of its own. */
static void keep_for_second(const qn_net *net, const qn_layer *l, qn_plan *p)
{
    const qn_norm norm = qn_net_norm(net, &l->second_norm, NULL);
    if (!l->second) return;
    qn_plan_norm_of(p, "norm kept", p->x, QN_REG_F, &norm, net->n_embd);
    p->waiting = QN_REG_F;
}

static void run_second(const qn_net *net, const qn_layer *l, int32_t i, qn_plan *p, const qn_close_to *to)
{
    const qn_input kept = qn_plan_rows(QN_REG_F, net->n_embd);
    if (!l->second) return;
    l->second->plan(net, l, i, p, &kept);
    l->second->close(net, l, p, to);
}

static void one_after_the_other(const qn_net *net, qn_plan *p, int32_t i, const left_over *before)
{
    const qn_layer *l = &net->layer[i];
    const qn_close_to to = { .post_norm = l->features & QN_F_POST_NORM, .scale = net->residual_scale };
    const qn_close_to mixed_to = { .post_norm = l->features & (QN_F_POST_NORM | QN_F_NORM_TWICE), .scale = net->residual_scale };
    const qn_norm attn_norm = pre_norm(net, l, &l->attn_norm, &l->attn_norm_b), ffn_norm = pre_norm(net, l, &l->ffn_norm, &l->ffn_norm_b);
    left_over between = *before;
    keep_for_second(net, l, p);
    if (l->mixer) {
        const qn_input x = take(net, p, before, &attn_norm), again = qn_plan_again(&x);
        if (l->beside) l->beside->plan(net, l, i, p, &x);
        l->mixer->plan(net, l, i, p, l->beside ? &again : &x);
        l->mixer->close(net, l, p, &mixed_to);
        if (l->beside) l->beside->close(net, l, p, &to);
        if (l->features & QN_F_NORM_TWICE) norm_twice(net, l, p);
        else norm_after(net, l, p, &l->attn_post_norm, &l->attn_post_norm_b);
        between = (left_over){ post_norm(net, l, &l->attn_post_norm), l->mixed_scale };
    }
    if (!l->ff) return;
    if (!l->mixer && i == net->n_layer - 1) qn_plan_only_outputs(p, QN_REG_T);
    const qn_input y = take(net, p, &between, &ffn_norm);
    if (l->ff_beside) {
        two_feed_forwards(net, l, i, p, &y);
        return;
    }
    l->ff->plan(net, l, i, p, &y);
    l->ff->close(net, l, p, &to);
    norm_after(net, l, p, &l->ffn_post_norm, &l->ffn_post_norm_b);
    run_second(net, l, i, p, &to);
}

static void side_by_side(const qn_net *net, qn_plan *p, int32_t i)
{
    const qn_layer *l = &net->layer[i];
    const qn_close_to to = { .scale = net->residual_scale };
    const qn_norm none = { 0 }, first = pre_norm(net, l, &l->attn_norm, &l->attn_norm_b);
    const qn_norm second = l->ffn_norm.n ? pre_norm(net, l, &l->ffn_norm, &l->ffn_norm_b) : first;
    const bool is_swapped = l->features & QN_F_NORMS_SWAPPED;
    const qn_norm attn_norm = is_swapped ? second : first, ffn_norm = is_swapped ? first : second;
    const qn_input x = qn_plan_normed(p, &none, &attn_norm, net->n_embd), y = qn_plan_normed(p, &none, &ffn_norm, net->n_embd);
    l->mixer->plan(net, l, i, p, &x);
    l->ff->plan(net, l, i, p, &y);
    l->mixer->close(net, l, p, &to);
    l->ff->close(net, l, p, &to);
}

/* A third half reads what the others have made of the residual stream, without a norm. */
static left_over third(const qn_net *net, qn_plan *p, int32_t i, const left_over *between)
{
    const qn_layer *l = &net->layer[i];
    const qn_close_to t = { .post_norm = true, .scale = 1 };
    const qn_norm none = { 0 };
    const qn_input x = take(net, p, between, &none);
    l->tail->plan(net, l, i, p, &x);
    l->tail->close(net, l, p, &t);
    return (left_over){ qn_net_norm(net, &l->rows.norm, NULL), 1 };
}

static left_over leave(const qn_net *net, qn_plan *p, int32_t i)
{
    const qn_layer *l = &net->layer[i];
    left_over left = { .scale = 1 };
    if (l->around) return left;
    left.norm = post_norm(net, l, l->ff ? &l->ffn_post_norm : &l->attn_post_norm);
    if (l->tail) left = third(net, p, i, &left);
    if (l->out_scale.w) left.scale = l->out_scale.w[0]; /* a plan for its size alone has no values */
    return left;
}

/* The streams of a layer follow what its block has made of one of them; then the tail reads that one, and adds to the others. */
static void behind(const qn_net *net, qn_plan *p, int32_t i)
{
    const qn_layer *l = &net->layer[i];
    const qn_close_to t = { .post_norm = true, .scale = 1 };
    l->around->close(net, l, p, &t);
    const qn_input x = qn_plan_rows(p->x, net->n_embd);
    l->tail->plan(net, l, i, p, &x);
    l->tail->close(net, l, p, &t);
    qn_altup_spread(net, l, p);
}

static void embed(const qn_net *net, int32_t n_ctx, qn_plan *p)
{
    const bool is_long = net->rope_factors_long.n && n_ctx > net->rope[0].n_ctx_orig;
    qn_rope ropes[QN_MAX_ROPES];
    for (int32_t i = 0; i < net->n_ropes; i++) {
        ropes[i] = net->rope[i];
        if (i == 0) ropes[i].factors = is_long ? net->rope_factors_long.w : net->rope_factors.w;
    }
    qn_plan_embed(p, &(qn_embed_args){
                         .table = &net->embed,
                         .positions = qn_weight_present(&net->positions) ? &net->positions : NULL,
                         .type = net->token_type.w,
                         .other_type = net->n_types > 1 ? net->other_types.w : NULL,
                         .scale = net->embed_scale,
                     });
    qn_plan_rope(p, ropes, net->n_ropes);
    if (net->features & QN_F_EMBED_NORM) {
        const qn_norm norm = qn_net_norm(net, &net->embed_norm, &net->embed_norm_b);
        qn_plan_norm(p, "embed norm", p->x, &norm, net->n_embd);
    }
    if (net->features & QN_F_LAYER_ROWS) qn_layer_rows_open(net, p);
    if (net->features & QN_F_STREAMS) qn_altup_open(net, p);
}

qn_status qn_net_plan(const qn_net *net, int32_t n_ctx, qn_plan *p, qn_err *err)
{
    *p = (qn_plan){ .i_layer = -1 };
    embed(net, n_ctx, p);
    left_over before = { .scale = 1 };
    for (int32_t i = 0; i < net->n_layer; i++) {
        const qn_layer *l = &net->layer[i];
        p->i_layer = i;
        if (l->around) l->around->plan(net, l, i, p, NULL);
        if (l->features & QN_F_PARALLEL) side_by_side(net, p, i);
        else one_after_the_other(net, p, i, &before);
        if (l->around) behind(net, p, i);
        before = leave(net, p, i);
    }
    p->i_layer = -1;
    if (net->features & QN_F_STREAMS) qn_altup_close(net, p);
    const qn_norm out_norm = qn_net_norm(net, &net->out_norm, &net->out_norm_b);
    const qn_input x = take(net, p, &before, &out_norm);
    qn_plan_head(p, &x, qn_net_head(net), net->head_b.w, net->logit_softcap, net->logit_scale);
    if (net->n_dense > p->row_width) p->row_width = net->n_dense; /* src/run/dense.c uses a step's rows */
    return qn_plan_finish(p, err);
}

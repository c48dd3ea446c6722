#include "src/ops/plan.h"

#include "src/base/mem.h"
#include "src/ops/exec.h"

#include <stdlib.h>

qn_stage *qn_plan_append(qn_plan *p, const char *name, qn_stage_fn *run)
{
    if (p->failed || !qn_grow((void **)&p->stage, &p->cap_stages, p->n_stages + 1, sizeof *p->stage)) {
        p->failed = true;
        return NULL;
    }
    qn_stage *s = &p->stage[p->n_stages++];
    *s = (qn_stage){ .name = name, .i_layer = p->i_layer, .run = run, .only_outputs = p->only_outputs };
    return s;
}

void qn_plan_widen(qn_plan *p, qn_reg r, int64_t width)
{
    if (width > p->width[r]) p->width[r] = width;
}

void qn_plan_embed(qn_plan *p, const qn_embed_args *a)
{
    qn_stage *s = qn_plan_append(p, "embed", qn_op_embed);
    if (!s) return;
    s->joined = true;
    s->u.embed = *a;
    if (a->table->n_cols > p->row_width) p->row_width = a->table->n_cols;
    qn_plan_widen(p, p->x, a->table->n_cols);
}

void qn_plan_rope(qn_plan *p, const qn_rope *ropes, int32_t n_ropes)
{
    for (int32_t i = 0; i < n_ropes; i++) {
        p->rope[i] = ropes[i];
        p->freq[i] = qn_new((size_t)ropes[i].n_rot / 2, sizeof(double));
        if (p->freq[i])
            qn_rope_frequencies(&ropes[i], p->freq[i]);
        else
            p->failed = true;
        p->n_ropes = i + 1;
    }
    (void)qn_plan_append(p, "angles", qn_op_angles);
}

qn_input qn_plan_normed(qn_plan *p, const qn_norm *post, const qn_norm *pre, int64_t width)
{
    if (post->kind == QN_NORM_NONE) return (qn_input){ .from = p->x, .pre = *pre, .width = width };
    const qn_reg x = p->x;
    p->x = x == QN_REG_X ? QN_REG_Y : QN_REG_X;
    qn_plan_widen(p, p->x, width);
    return (qn_input){ .from = QN_REG_T, .post = *post, .x = x, .to = p->x, .scale = 1, .pre = *pre, .width = width };
}

qn_input qn_plan_rows(qn_reg from, int64_t width)
{
    return (qn_input){ .from = from, .width = width };
}

static qn_stage *append_matmul(qn_plan *p, const char *name, const qn_input *in, const qn_mat *mats, int32_t n_mats)
{
    qn_stage *s = qn_plan_append(p, name, qn_op_matmul);
    if (!s) return NULL;
    s->cost = qn_cost_matmul;
    s->u.matmul = (qn_matmul_stage_args){ .in = *in, .n_mats = n_mats, .logit_scale = 1 };
    if (in->width > p->row_width) p->row_width = in->width;
    if (in->width > p->norm_width && (in->pre.kind || in->post.kind)) p->norm_width = in->width;
    for (int32_t i = 0; i < n_mats; i++) {
        s->u.matmul.mat[i] = mats[i];
        s->u.matmul.in.quantised |= qn_weight_reads_a16(mats[i].w);
    }
    return s;
}

void qn_plan_matmul(qn_plan *p, const char *name, const qn_input *in, const qn_mat *mats, int32_t n_mats, qn_unary glu)
{
    qn_stage *s = append_matmul(p, name, in, mats, n_mats);
    if (!s) return;
    s->u.matmul.glu = glu;
    for (int32_t i = 0; i < (glu ? 1 : n_mats); i++) qn_plan_widen(p, mats[i].out, mats[i].w->n_rows);
}

void qn_plan_close(qn_plan *p, const char *name, const qn_input *in, const qn_weight *w, const float *bias, const qn_close_to *to)
{
    const qn_reg out = !to->post_norm ? p->x : to->aside ? to->aside : QN_REG_T;
    const qn_mat m = { .w = w, .bias = bias, .out = out, .adds = !to->post_norm, .scale = to->scale };
    qn_plan_matmul(p, name, in, &m, 1, QN_UNARY_NONE);
}

qn_input qn_plan_again(const qn_input *in)
{
    if (in->post.kind == QN_NORM_NONE) return *in;
    return (qn_input){ .from = in->to, .pre = in->pre, .width = in->width };
}

void qn_plan_experts_up(qn_plan *p, const qn_input *in, const qn_experts *e, qn_unary glu)
{
    const qn_routing *r = &e->routing;
    qn_stage *s = qn_plan_append(p, "experts up", qn_op_experts_up);
    if (!s) return;
    s->cost = qn_cost_experts;
    s->u.experts = (qn_experts_args){ .in = *in, .experts = *e, .glu = glu, .first_ready = p->n_ready };
    s->u.experts.in.quantised = (e->gate && qn_weight_reads_a16(e->gate)) || qn_weight_reads_a16(e->up);
    p->n_ready += r->n_expert;
    if (e->down->n_cols > p->pair_width) p->pair_width = e->down->n_cols;
    if (r->n_expert > p->max_experts) p->max_experts = r->n_expert;
    if (r->n_used > p->max_used) p->max_used = r->n_used;
    if (in->width > p->row_width) p->row_width = in->width;
    if (in->width > p->norm_width) p->norm_width = in->width;
    if (in->width > p->gather_width) p->gather_width = in->width;
}

void qn_plan_experts_down(qn_plan *p, const qn_experts *e, const qn_close_to *to)
{
    qn_stage *s = qn_plan_append(p, "experts down", qn_op_experts_down);
    if (!s) return;
    s->cost = qn_cost_experts;
    s->u.experts = (qn_experts_args){ .experts = *e, .out = to->post_norm ? QN_REG_T : p->x, .adds = !to->post_norm, .scale = to->scale };
    s->u.experts.down_quantised = qn_weight_reads_a16(e->down);
    qn_plan_widen(p, QN_REG_T, e->down->n_rows);
}

void qn_plan_join(qn_plan *p)
{
    if (p->n_stages) p->stage[p->n_stages - 1].joined = true;
}

static qn_stage *heads(qn_plan *p, const char *name, qn_stage_fn *run, const qn_heads *h)
{
    qn_stage *s = qn_plan_append(p, name, run);
    if (!s) return NULL;
    s->u.heads = *h;
    qn_plan_widen(p, QN_REG_Q, (int64_t)h->n_head * h->head_dim);
    qn_plan_widen(p, QN_REG_O, (int64_t)h->n_head * h->head_dim_v);
    if (h->n_head > p->max_heads) p->max_heads = h->n_head;
    if (h->head_dim > p->max_head_dim) p->max_head_dim = h->head_dim;
    if (h->head_dim_v > p->max_head_dim) p->max_head_dim = h->head_dim_v;
    return s;
}

void qn_plan_store(qn_plan *p, const qn_heads *h)
{
    (void)heads(p, "rope store", qn_op_store, h);
    if (h->v_is_k) qn_plan_widen(p, QN_REG_V, (int64_t)h->n_head_kv * h->head_dim_v);
}

void qn_plan_norm_of(qn_plan *p, const char *name, qn_reg from, qn_reg at, const qn_norm *norm, int64_t width)
{
    qn_stage *s = qn_plan_append(p, name, qn_op_norm);
    if (!s) return;
    s->u.norm = (qn_norm_args){ from, at, *norm, width };
    qn_plan_widen(p, at, width);
}

void qn_plan_norm(qn_plan *p, const char *name, qn_reg at, const qn_norm *norm, int64_t width)
{
    qn_plan_norm_of(p, name, at, at, norm, width);
}

void qn_plan_temper(qn_plan *p, qn_reg at, const qn_temper *temper, int64_t width)
{
    qn_stage *s = temper->scale != 0 ? qn_plan_append(p, "temper", qn_op_temper) : NULL;
    if (s) s->u.temper = (qn_temper_args){ at, *temper, width };
}

void qn_plan_xielu(qn_plan *p, const qn_xielu_args *a)
{
    qn_stage *s = qn_plan_append(p, "xielu", qn_op_xielu);
    if (s) s->u.xielu = *a;
}

void qn_plan_by_head(qn_plan *p, const char *name, const qn_by_head_args *a)
{
    qn_stage *s = qn_plan_append(p, name, qn_op_by_head);
    if (!s) return;
    s->cost = qn_cost_by_head;
    s->u.by_head = *a;
    s->u.by_head.quantised = qn_weight_reads_a16(a->w);
    if (a->w->n_cols > p->gather_width) p->gather_width = a->w->n_cols;
    qn_plan_widen(p, a->out, a->out_at + a->w->n_parts * a->out_stride);
}

void qn_plan_latent(qn_plan *p, const qn_latent_args *a)
{
    qn_stage *s = qn_plan_append(p, "latent store", qn_op_latent);
    if (!s) return;
    s->u.latent = *a;
    qn_plan_widen(p, QN_REG_Q, (int64_t)a->heads.n_head * a->heads.head_dim);
}

void qn_plan_only_outputs(qn_plan *p, qn_reg also)
{
    p->only_outputs = true;
    qn_stage *s = qn_plan_append(p, "outputs", qn_op_outputs);
    if (s) s->u.outputs = (qn_outputs_args){ p->x, also, p->waiting };
}

void qn_plan_attend(qn_plan *p, const qn_heads *h)
{
    qn_stage *s = heads(p, "attend", qn_op_attend, h);
    if (s) s->cost = qn_cost_attend;
}

void qn_plan_head(qn_plan *p, const qn_input *in, const qn_weight *head, const float *bias, float softcap, float logit_scale)
{
    p->i_layer = -1;
    qn_stage *s = append_matmul(p, "head", in, &(qn_mat){ .w = head, .bias = bias }, 1);
    if (!s) return;
    s->u.matmul.to_logits = true;
    p->n_logits = head->n_rows;
    s->u.matmul.softcap = softcap;
    s->u.matmul.logit_scale = logit_scale;
}

qn_status qn_plan_finish(const qn_plan *p, qn_err *err)
{
    return p->failed ? qn_fail(err, QN_ERR_NOMEM, "no memory for the plan of the forward pass") : QN_OK;
}

void qn_plan_free(qn_plan *p)
{
    for (int32_t i = 0; i < p->n_ropes; i++) free(p->freq[i]);
    free(p->stage);
    *p = (qn_plan){ 0 };
}

#include "src/ops/plan.h"

#include "src/base/mem.h"
#include "src/ops/exec.h"

#include <stdlib.h>

static qn_stage *append(qn_plan *p, const char *name, qn_stage_fn *run)
{
    if (p->failed || !qn_grow((void **)&p->stage, &p->cap_stages, p->n_stages + 1, sizeof *p->stage)) {
        p->failed = true;
        return NULL;
    }
    qn_stage *s = &p->stage[p->n_stages++];
    *s = (qn_stage){ .name = name, .i_layer = p->i_layer, .run = run };
    return s;
}

static void widen(qn_plan *p, qn_reg r, int64_t width)
{
    if (width > p->width[r]) p->width[r] = width;
}

static void widen_act(qn_plan *p, int64_t width)
{
    if (width > p->act_width) p->act_width = width;
}

/* Formats multiply float32 rows or A16 rows: the stage that prepares them learns here what its readers want. */
static void tell_preparer(qn_plan *p, const qn_weight *w)
{
    if (p->failed) return;
    qn_stage *s = &p->stage[p->i_preparer];
    if (qn_weight_reads_a16(w)) s->want_a16 = true;
    else s->want_f32 = true;
}

void qn_plan_embed(qn_plan *p, const qn_weight *table, float scale)
{
    qn_stage *s = append(p, "embed", qn_op_embed);
    if (!s) return;
    s->u.embed = (qn_embed_args){ table, scale };
    widen(p, QN_REG_X, table->n_cols);
}

void qn_plan_rope(qn_plan *p, const qn_rope *ropes, int32_t n_ropes)
{
    for (int32_t i = 0; i < n_ropes; i++) p->rope[i] = ropes[i];
    p->n_ropes = n_ropes;
    (void)append(p, "angles", qn_op_angles);
}

static void prepare(qn_plan *p, const char *name, qn_prepare_args a)
{
    qn_stage *s = append(p, name, qn_op_prepare);
    if (!s) return;
    p->i_preparer = p->n_stages - 1;
    s->u.prepare = a;
    widen(p, QN_REG_N, a.width);
    widen(p, a.from, a.width);
    widen_act(p, a.width);
}

void qn_plan_norm(qn_plan *p, const qn_norm *pre, int64_t width)
{
    prepare(p, "norm", (qn_prepare_args){ .from = QN_REG_X, .pre = *pre, .width = width });
}

void qn_plan_add_norm(qn_plan *p, const qn_norm *post, const qn_norm *pre, int64_t width)
{
    prepare(p, "add norm", (qn_prepare_args){ .from = QN_REG_T, .post = *post, .pre = *pre, .width = width });
}

void qn_plan_rows(qn_plan *p, qn_reg from, int64_t width)
{
    prepare(p, "rows", (qn_prepare_args){ .from = from, .width = width });
}

void qn_plan_glu(qn_plan *p, qn_glu_kind kind, int64_t width)
{
    qn_stage *s = append(p, "glu", qn_op_glu);
    if (!s) return;
    p->i_preparer = p->n_stages - 1;
    s->u.glu = (qn_glu_args){ .kind = kind, .width = width };
    widen(p, QN_REG_G, width);
    widen(p, QN_REG_U, width);
    widen(p, QN_REG_N, width);
    widen_act(p, width);
}

void qn_plan_matmul(qn_plan *p, const char *name, const qn_mat *mats, int32_t n_mats)
{
    qn_stage *s = append(p, name, qn_op_matmul);
    if (!s) return;
    s->cost = qn_cost_matmul;
    s->u.matmul = (qn_matmul_stage_args){ .n_mats = n_mats, .logit_scale = 1 };
    for (int32_t i = 0; i < n_mats; i++) {
        s->u.matmul.mat[i] = mats[i];
        widen(p, mats[i].out, mats[i].w->n_rows);
        tell_preparer(p, mats[i].w);
    }
}

static qn_stage *heads(qn_plan *p, const char *name, qn_stage_fn *run, const qn_heads *h)
{
    qn_stage *s = append(p, name, run);
    if (!s) return NULL;
    s->u.heads = *h;
    widen(p, QN_REG_O, (int64_t)h->n_head * h->head_dim_v);
    if (h->head_dim > p->max_head_dim) p->max_head_dim = h->head_dim;
    if (h->head_dim_v > p->max_head_dim) p->max_head_dim = h->head_dim_v;
    return s;
}

void qn_plan_store(qn_plan *p, const qn_heads *h)
{
    (void)heads(p, "rope store", qn_op_store, h);
}

void qn_plan_attend(qn_plan *p, const qn_heads *h)
{
    qn_stage *s = heads(p, "attend", qn_op_attend, h);
    if (s) s->cost = qn_cost_attend;
}

void qn_plan_head(qn_plan *p, const qn_norm *post, const qn_norm *pre, int64_t width, const qn_weight *head, float softcap,
                  float logit_scale)
{
    p->i_layer = -1;
    const bool adds = post->kind != QN_NORM_NONE;
    const qn_prepare_args a = { .from = adds ? QN_REG_T : QN_REG_X, .post = *post, .pre = *pre, .width = width, .only_outputs = true };
    prepare(p, "head norm", a);
    tell_preparer(p, head);
    qn_stage *s = append(p, "head", qn_op_matmul);
    if (!s) return;
    s->cost = qn_cost_matmul;
    s->u.matmul = (qn_matmul_stage_args){
        .mat = { { .w = head } }, .n_mats = 1, .to_logits = true, .softcap = softcap, .logit_scale = logit_scale
    };
}

qn_status qn_plan_finish(const qn_plan *p, qn_err *err)
{
    return p->failed ? qn_fail(err, QN_ERR_NOMEM, "no memory for the plan of the forward pass") : QN_OK;
}

void qn_plan_free(qn_plan *p)
{
    free(p->stage);
    *p = (qn_plan){ 0 };
}

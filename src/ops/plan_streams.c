/* Builders of src/ops/streams.h's stages. */
#include "src/ops/exec.h"

static void scratch(qn_plan *p, int64_t floats)
{
    if (floats > p->scratch_width) p->scratch_width = floats;
}

void qn_plan_streams_open(qn_plan *p, const qn_streams *u)
{
    qn_stage *s = qn_plan_append(p, "streams", qn_op_streams_open);
    if (!s) return;
    s->u.streams = *u;
    s->u.streams.x = p->x;
    qn_plan_widen(p, QN_REG_U, u->n * u->width);
    qn_plan_widen(p, QN_REG_F, u->n * u->width);
}

void qn_plan_streams_close(qn_plan *p, const qn_streams *u)
{
    qn_stage *s = qn_plan_append(p, "streams", qn_op_streams_close);
    if (!s) return;
    s->u.streams = *u;
    s->u.streams.x = p->x;
}

void qn_plan_predict(qn_plan *p, const qn_streams *u, const qn_stream_router *by)
{
    qn_stage *s = qn_plan_append(p, "predict", qn_op_streams_predict);
    if (!s) return;
    s->u.stream_step = (qn_stream_step){ .of = *u, .by = *by };
    s->u.stream_step.of.x = p->x;
    scratch(p, u->width);
}

void qn_plan_correct(qn_plan *p, const qn_streams *u, const qn_stream_router *by, const qn_norm *post, const float *scale)
{
    const qn_norm none = { 0 };
    const qn_input in = qn_plan_normed(p, post, &none, u->width);
    qn_stage *s = qn_plan_append(p, "correct", qn_op_streams_correct);
    if (!s) return;
    s->u.stream_step = (qn_stream_step){ .of = *u, .by = *by, .in = in, .scale = scale };
    scratch(p, 2 * u->width);
}

void qn_plan_spread(qn_plan *p, const qn_streams *u, const qn_norm *norm)
{
    qn_stage *s = qn_plan_append(p, "spread", qn_op_streams_spread);
    if (!s) return;
    s->u.stream_spread = (qn_stream_spread){ *u, *norm };
    scratch(p, u->width);
}

void qn_plan_augment(qn_plan *p, qn_reg from, const qn_norm *own, const qn_norm *post, int64_t width)
{
    qn_stage *s = qn_plan_append(p, "augment", qn_op_augment);
    if (!s) return;
    s->u.augment = (qn_augment_args){ p->x, from, *own, *post, width, .keeps = true };
    scratch(p, 2 * width);
}

void qn_plan_sum(qn_plan *p, qn_reg at, const qn_norm *own, qn_reg from, const qn_norm *post, int64_t width)
{
    qn_stage *s = qn_plan_append(p, "sum", qn_op_augment);
    if (!s) return;
    s->u.augment = (qn_augment_args){ at, from, *own, *post, width, .keeps = false };
    scratch(p, 2 * width);
}

void qn_plan_layer_rows(qn_plan *p, const qn_layer_rows_args *a)
{
    qn_stage *s = qn_plan_append(p, "layer rows", qn_op_layer_rows);
    if (!s) return;
    s->u.layer_rows = *a;
    scratch(p, a->n_layer * a->width);
}

void qn_plan_sparse(qn_plan *p, const qn_sparse_args *a)
{
    qn_stage *s = qn_plan_append(p, "sparse", qn_op_sparse);
    if (s) s->u.sparse = *a;
}

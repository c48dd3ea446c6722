/* Builders of src/ops/recur.h's stages. */
#include "src/ops/exec.h"

void qn_plan_conv(qn_plan *p, const qn_conv_stage_args *a)
{
    qn_stage *s = qn_plan_append(p, "conv", qn_op_conv);
    if (!s) return;
    s->u.conv = *a;
    qn_plan_widen(p, a->out.reg, a->out.at + a->n_channels);
}

void qn_plan_scan(qn_plan *p, const qn_scan_stage_args *a)
{
    qn_stage *s = qn_plan_append(p, "scan", qn_op_scan);
    if (!s) return;
    s->cost = qn_cost_scan;
    s->u.scan = *a;
    qn_plan_widen(p, a->out.reg, a->out.at + (int64_t)a->n_head * a->d_v);
}

void qn_plan_selective(qn_plan *p, const qn_selective_stage_args *a)
{
    qn_stage *s = qn_plan_append(p, "selective scan", qn_op_selective);
    if (!s) return;
    s->cost = qn_cost_selective;
    s->u.selective = *a;
    qn_plan_widen(p, a->out.reg, a->out.at + a->n_channels);
}

void qn_plan_gate(qn_plan *p, const qn_gate_stage_args *a)
{
    qn_stage *s = qn_plan_append(p, "gate", qn_op_gate);
    if (s) s->u.gate = *a;
}

#include "src/ops/exec.h"

/* A head of a token is a task. The gates stay where they were when the outputs' rows moved to the front. */
void qn_op_gate(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_gate_stage_args *a = &s->u.gate;
    float *open = qn_exec_scratch(x, i_thread);
    int64_t begin, end;
    qn_split((int64_t)qn_exec_n_rows(x, s) * a->n_head, i_thread, n_threads, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        const int32_t row = (int32_t)(i / a->n_head), head = (int32_t)(i % a->n_head), n = a->one_each ? 1 : a->head_dim;
        const float *gate = qn_exec_row(x, a->gate.reg, qn_exec_token(x, s, row)) + a->gate.at + head * a->gate_stride;
        float *out = qn_exec_row(x, a->at, row) + (int64_t)head * a->head_dim;
        (a->softplus ? x->k->softplus : x->k->sigmoid)(gate, n, open);
        if (a->one_each) x->k->scale(out, open[0], a->head_dim, out);
        else x->k->mul(out, open, a->head_dim, out);
    }
}

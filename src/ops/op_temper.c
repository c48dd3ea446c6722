#include "src/ops/exec.h"

/* A token is a task. */
void qn_op_temper(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_temper_args *a = &s->u.temper;
    int64_t begin, end;
    qn_split(x->batch->n, i_thread, n_threads, &begin, &end);
    for (int64_t t = begin; t < end; t++) {
        float *row = qn_exec_row(x, a->at, (int32_t)t);
        x->k->scale(row, (float)qn_temper_factor(&a->temper, x->batch->position[t]), a->width, row);
    }
}

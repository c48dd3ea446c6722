#include "src/ops/exec.h"

#include <string.h>

/* Row output[i] moves to row i. Outputs ascend, so that no row is overwritten before it has moved; threads cut the columns. */
static void gather(const qn_exec *x, qn_reg r, int32_t i_thread, int32_t n_threads)
{
    int64_t begin, end;
    qn_split(x->plan->width[r], i_thread, n_threads, &begin, &end);
    for (int32_t i = 0; i < x->batch->n_outputs; i++) {
        const int32_t t = x->batch->output[i];
        if (t != i) memcpy(qn_exec_row(x, r, i) + begin, qn_exec_row(x, r, t) + begin, (size_t)(end - begin) * sizeof(float));
    }
}

void qn_op_outputs(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    gather(x, s->u.outputs.x, i_thread, n_threads);
    gather(x, s->u.outputs.also, i_thread, n_threads);
    if (s->u.outputs.waiting != QN_REG_X) gather(x, s->u.outputs.waiting, i_thread, n_threads);
}

#include "src/ops/exec.h"

#include <math.h>

/* expm1f keeps what exp(x) - 1 would lose near zero, where x is taken off again. */
static float xielu(const qn_xielu *a, float x)
{
    if (x > 0) return a->positive * x * x + a->beta * x;
    return (expm1f(x < a->most ? x : a->most) - x) * a->negative + a->beta * x;
}

/* Columns of all rows are one run, which the threads cut. */
void qn_op_xielu(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_xielu_args *a = &s->u.xielu;
    int64_t begin, end;
    qn_split(qn_exec_n_rows(x, s) * a->width, i_thread, n_threads, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        float *at = qn_exec_row(x, a->at, (int32_t)(i / a->width)) + i % a->width;
        *at = xielu(&a->xielu, *at);
    }
}

#include "src/ops/exec.h"
#include "src/ops/glu.h"

#include <math.h>

/* Sum of x - mean to the power of one or two: eight sums in double, then halves. */
static double sum_of(const float *x, int64_t n, double mean, bool squared)
{
    enum { N = 8 };
    double sum[N] = { 0 };
    for (int64_t i = 0; i < n; i++) {
        const double d = x[i] - mean;
        sum[i % N] += squared ? d * d : d;
    }
    for (int half = N / 2; half; half /= 2)
        for (int j = 0; j < half; j++) sum[j] += sum[j + half];
    return sum[0];
}

static float cutoff(const float *gate, int64_t n, float deviations)
{
    const double mean = sum_of(gate, n, 0, false) / (double)n;
    return (float)(mean + deviations * sqrt(sum_of(gate, n, mean, true) / (double)(n > 1 ? n - 1 : 1)));
}

static void open_gates(const qn_exec *x, const qn_sparse_args *a, int32_t i, float least, int64_t begin, int64_t end)
{
    float *gate = qn_exec_row(x, a->at, i) + begin;
    for (int64_t c = 0; c < end - begin; c++) gate[c] -= least;
    x->k->relu(gate, end - begin, gate);
    qn_glu_row(x->k, (qn_unary)a->act, gate, qn_exec_row(x, a->up, i) + begin, end - begin, gate);
}

/* Of a few rows all threads look at the whole row, and then each has columns of it; of many, each has rows. */
void qn_op_sparse(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_sparse_args *a = &s->u.sparse;
    const int32_t n = qn_exec_n_rows(x, s);
    float least[QN_OWN_ROWS];
    int64_t begin, end;
    if (n > QN_OWN_ROWS) {
        qn_split(n, i_thread, n_threads, &begin, &end);
        for (int32_t i = (int32_t)begin; i < end; i++) open_gates(x, a, i, cutoff(qn_exec_row(x, a->at, i), a->width, a->deviations), 0, a->width);
        return;
    }
    for (int32_t i = 0; i < n; i++) least[i] = cutoff(qn_exec_row(x, a->at, i), a->width, a->deviations);
    qn_pool_barrier(x->pool, i_thread);
    qn_split(a->width, i_thread, n_threads, &begin, &end);
    for (int32_t i = 0; i < n; i++) open_gates(x, a, i, least[i], begin, end);
}

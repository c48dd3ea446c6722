#include "src/ops/exec.h"
#include "src/ops/glu.h"

#include <math.h>

/* Eight sums in double, which a compiler keeps in registers, then halves. */
enum { N_SUMS = 8 };

static double fold(double *sum)
{
    for (int half = N_SUMS / 2; half; half /= 2)
        for (int j = 0; j < half; j++) sum[j] += sum[j + half];
    return sum[0];
}

static double sum_of(const float *x, int64_t n)
{
    double sum[N_SUMS] = { 0 };
    int64_t i = 0;
    for (; i + N_SUMS <= n; i += N_SUMS)
        for (int j = 0; j < N_SUMS; j++) sum[j] += x[i + j];
    for (int j = 0; i + j < n; j++) sum[j] += x[i + j];
    return fold(sum);
}

static double squares_from(const float *x, int64_t n, double mean)
{
    double sum[N_SUMS] = { 0 };
    int64_t i = 0;
    for (; i + N_SUMS <= n; i += N_SUMS)
        for (int j = 0; j < N_SUMS; j++) sum[j] += (x[i + j] - mean) * (x[i + j] - mean);
    for (int j = 0; i + j < n; j++) sum[j] += (x[i + j] - mean) * (x[i + j] - mean);
    return fold(sum);
}

static float cutoff(const float *gate, int64_t n, float deviations)
{
    const double mean = sum_of(gate, n) / (double)n;
    return (float)(mean + deviations * sqrt(squares_from(gate, n, mean) / (double)(n > 1 ? n - 1 : 1)));
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

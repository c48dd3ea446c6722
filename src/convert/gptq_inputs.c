/* The second moments of what the matrices of a stage read, and what GPTQ needs of them. */
#include "src/base/mem.h"
#include "src/convert/gptq_hook.h"

#include <math.h>
#include <stdlib.h>

typedef struct summing {
    const qn_linalg *linalg;
    qn_gptq_inputs *in;
} summing;

/* One thread sums: the linear algebra has threads of its own. */
static bool add_rows(void *user, const qn_stage *s, const float *x, int64_t x_stride, int32_t n_rows, int32_t i_thread, int32_t n_threads)
{
    const summing *k = user;
    (void)s;
    (void)n_threads;
    if (i_thread == 0) k->linalg->gram(k->linalg->user, k->in->n, n_rows, x, x_stride, k->in->gram);
    return false;
}

static qn_status sum_windows(qn_gptq_inputs *in, qn_gptq *g, qn_err *err)
{
    summing k = { &g->linalg, in };
    const qn_observer o = { add_rows, &k };
    for (int64_t i = 0; i < g->walk.text.n_chunks; i++) {
        QN_TRY(qn_gptq_progress(g, err));
        qn_walk_observe(&g->walk, i, &o);
    }
    return QN_OK;
}

static double diagonal_mean(const qn_gptq_inputs *in)
{
    double sum = 0;
    for (int64_t i = 0; i < in->n; i++) sum += (double)in->gram[i * in->n + i];
    return sum / (double)in->n;
}

static int by_importance(const void *pa, const void *pb)
{
    const double *a = pa, *b = pb; /* importance, column */
    return a[0] != b[0] ? (a[0] > b[0] ? -1 : 1) : (a[1] > b[1]) - (a[1] < b[1]);
}

/* Columns of large inputs first, while all others can still make their errors good. */
static void sort_columns(qn_gptq_inputs *in)
{
    double *pair = in->work;
    for (int64_t i = 0; i < in->n; i++) {
        pair[2 * i] = (double)in->gram[i * in->n + i];
        pair[2 * i + 1] = (double)i;
    }
    qsort(pair, (size_t)in->n, 2 * sizeof *pair, by_importance);
    for (int64_t i = 0; i < in->n; i++) in->order[i] = (int32_t)pair[2 * i + 1];
}

/* The upper triangle, columns in their order, with the damping on the diagonal. */
static void fill(qn_gptq_inputs *in, bool ordered, double damping)
{
    const int64_t n = in->n;
    for (int64_t p = 0; p < n; p++)
        for (int64_t q = p; q < n; q++) {
            const int64_t i = ordered ? in->order[p] : p, j = ordered ? in->order[q] : q;
            in->work[p * n + q] = (double)in->gram[i < j ? i * n + j : j * n + i] + (p == q ? damping : 0);
        }
}

static void use_factor(qn_gptq_inputs *in, bool ordered, double damping)
{
    const int64_t n = in->n;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < i; j++) in->gram[i * n + j] = in->gram[j * n + i];
        in->gram[i * n + i] += (float)damping;
    }
    for (int64_t p = 0; p < n; p++) {
        const double u = in->work[p * n + p];
        in->importance[ordered ? in->order[p] : p] = (float)(1 / (u * u));
        for (int64_t k = p + 1; k < n; k++) in->carry[k * n + p] = (float)(in->work[p * n + k] / u);
    }
}

static qn_status factor(qn_gptq_inputs *in, const qn_gptq *g, qn_err *err)
{
    double mean = diagonal_mean(in);
    if (!(mean < INFINITY)) return qn_fail(err, QN_ERR_NUMERIC, "the inputs of a matrix are not finite over the calibration text");
    for (int64_t i = 0; mean == 0 && i < in->n; i++) in->gram[i * in->n + i] = 1; /* never used by the text: rounded as it is */
    if (mean == 0) mean = 1;
    if (g->act_order) sort_columns(in);
    for (double damping = g->damping * mean; damping < 10 * mean; damping *= 10) { /* too little where inputs are nearly dependent */
        fill(in, g->act_order, damping);
        if (!g->linalg.factor(g->linalg.user, in->n, in->work)) continue;
        use_factor(in, g->act_order, damping);
        return QN_OK;
    }
    return qn_fail(err, QN_ERR_NUMERIC, "the second moments of a matrix's inputs are not positive definite");
}

qn_status qn_gptq_inputs_open(qn_gptq_inputs *in, qn_gptq *g, qn_err *err)
{
    const int64_t n = qn_walk_stage(&g->walk)->u.matmul.in.width;
    size_t n2;
    *in = (qn_gptq_inputs){ .n = n };
    qn_status s = QN_OK;
    if (qn_size_mul((size_t)n, (size_t)n, &n2)) {
        in->gram = qn_new(n2, sizeof(float));
        in->work = qn_new(n2 < 2 ? 2 : n2, sizeof(double));
        in->carry = qn_new(n2, sizeof(float));
        in->importance = qn_new((size_t)n, sizeof(float));
        in->order = qn_new((size_t)n, sizeof(int32_t));
    }
    if (!in->gram || !in->work || !in->carry || !in->importance || !in->order)
        s = qn_fail(err, QN_ERR_NOMEM, "no memory for the second moments of %lld inputs", (long long)n);
    if (s == QN_OK) s = sum_windows(in, g, err);
    if (s == QN_OK) s = factor(in, g, err);
    if (s != QN_OK) qn_gptq_inputs_close(in);
    return s;
}

void qn_gptq_inputs_close(qn_gptq_inputs *in)
{
    free(in->gram);
    free(in->work);
    free(in->carry);
    free(in->importance);
    free(in->order);
    *in = (qn_gptq_inputs){ 0 };
}

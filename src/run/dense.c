#include "src/run/dense.h"

#include "src/base/mem.h"
#include "src/base/pool.h"
#include "src/ops/multiply.h"

#include <stdlib.h>

typedef struct job {
    qn_engine *e;
    float *x, *hidden; /* [n_embd], [n_dense] */
} job;

/* A thread's share of the rows of w. Every thread makes the row that they read for itself. */
static void multiply(const qn_exec *x, const qn_weight *w, const float *in, float *out, int32_t i_thread, int32_t n_threads)
{
    int64_t begin, end;
    qn_split(w->n_panels, i_thread, n_threads, &begin, &end);
    if (qn_weight_reads_a16(w)) qn_rows_quantize(x, in, w->n_cols, &x->own[i_thread], 0);
    const qn_act act = qn_rows_act(x, &x->own[i_thread], 0, in, w->n_cols);
    if (begin < end) (void)qn_multiply(x, w, 0, begin, end, &act, 1, NULL, i_thread, out + begin * QN_PANEL, w->n_rows);
}

static void run(void *user, int32_t i_thread, int32_t n_threads)
{
    const job *j = user;
    const qn_net *net = &j->e->model->net;
    multiply(&j->e->exec, &net->dense_2, j->x, j->hidden, i_thread, n_threads);
    qn_pool_barrier(j->e->pool, i_thread);
    multiply(&j->e->exec, &net->dense_3, j->hidden, j->x, i_thread, n_threads);
}

qn_status qn_dense_layers(qn_engine *e, float *x, qn_err *err)
{
    const qn_net *net = &e->model->net;
    if (!net->n_dense) return QN_OK;
    float *hidden = qn_new((size_t)net->n_dense, sizeof *hidden);
    if (!hidden) return qn_fail(err, QN_ERR_NOMEM, "no memory for the matrices behind the pooling");
    pthread_mutex_lock(&e->lock); /* the threads and their buffers are those of steps */
    qn_pool_run(e->pool, run, &(job){ e, x, hidden });
    pthread_mutex_unlock(&e->lock);
    free(hidden);
    return QN_OK;
}

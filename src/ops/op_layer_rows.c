#include "src/ops/exec.h"

/* A token is a task. The table, as large as half of a model, stays in the file: a text reads few of its rows. */
void qn_op_layer_rows(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_layer_rows_args *a = &s->u.layer_rows;
    const int64_t n = a->n_layer * a->width;
    float *row = qn_exec_scratch(x, i_thread);
    int64_t begin, end;
    qn_split(x->batch->n, i_thread, n_threads, &begin, &end);
    for (int64_t t = begin; t < end; t++) {
        float *p = qn_exec_row(x, QN_REG_P, (int32_t)t);
        qn_weight_read_row(a->table, x->batch->token[t], row);
        x->k->scale(row, a->table_scale, n, row);
        x->k->scale(p, a->projection_scale, n, p);
        for (int64_t at = 0; at < n; at += a->width) qn_norm_row(x, &a->norm, p + at, a->width, p + at);
        x->k->add(p, row, n, p);
        x->k->scale(p, a->scale, n, p);
    }
}

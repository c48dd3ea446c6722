#include "src/ops/exec.h"

/* x = row of the table * scale, a token at a time. A tied table is the packed head: the row is one lane of a panel. */
void qn_op_embed(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_embed_args *a = &s->u.embed;
    const qn_weight *w = a->table;
    const qn_matmul_row *row = &x->k->matmul[w->fmt->id];
    int64_t begin, end;
    qn_split(x->batch->n, i_thread, n_threads, &begin, &end);
    for (int64_t t = begin; t < end; t++) {
        const int64_t id = x->batch->token[t];
        float *out = qn_exec_row(x, QN_REG_X, (int32_t)t);
        row->unpack_row(w->fmt, w->panels + (size_t)(id / QN_PANEL) * w->panel_bytes, (int32_t)(id % QN_PANEL), w->n_cols, out);
        if (a->scale != 1) x->k->scale(out, a->scale, w->n_cols, out);
    }
}

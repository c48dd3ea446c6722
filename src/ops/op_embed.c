#include "src/ops/exec.h"

static void look_up(const qn_exec *x, const qn_weight *w, int64_t id, float *out)
{
    x->k->matmul[w->fmt->id].unpack_row(w->fmt, w->panels + (size_t)(id / QN_PANEL) * w->panel_bytes, (int32_t)(id % QN_PANEL), w->n_cols, out);
}

/* x = row of the table * scale, plus the row of the type and of the position, a token at a time. A tied table is the packed head: the row is one
 * lane of a panel. */
void qn_op_embed(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_embed_args *a = &s->u.embed;
    float *position = qn_exec_scratch(x, i_thread);
    int64_t begin, end;
    qn_split(x->batch->n, i_thread, n_threads, &begin, &end);
    for (int64_t t = begin; t < end; t++) {
        float *out = qn_exec_row(x, QN_REG_X, (int32_t)t);
        look_up(x, a->table, x->batch->token[t], out);
        if (a->scale != 1) x->k->scale(out, a->scale, a->table->n_cols, out);
        const float *type = a->other_type && x->batch->is_other && x->batch->is_other[t] ? a->other_type : a->type;
        if (type) x->k->add(out, type, a->table->n_cols, out);
        if (!a->positions) continue;
        look_up(x, a->positions, x->batch->position[t], position);
        x->k->add(out, position, a->table->n_cols, out);
    }
}

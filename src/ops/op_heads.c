#include "src/ops/multiply.h"

/* Rows [i, i + n) of one head, as the product reads them: float32 where they are, integers in a place of the thread's own. */
static qn_act rows_of_head(const qn_exec *x, const qn_by_head_args *a, int32_t head, int32_t i, int32_t n, int32_t i_thread)
{
    const float *rows = qn_exec_row(x, a->in, i) + a->in_at + head * a->in_stride;
    const qn_rows *to = &x->gathered[i_thread];
    for (int32_t j = 0; j < n && a->quantised; j++) qn_rows_quantize(x, rows + j * x->stride[a->in], a->w->n_cols, to, j);
    return qn_rows_act(x, to, 0, rows, x->stride[a->in]);
}

/* Panels [begin, end) of one head. */
static void run_head(const qn_exec *x, const qn_stage *s, int32_t head, int64_t begin, int64_t end, int32_t i_thread)
{
    const qn_by_head_args *a = &s->u.by_head;
    const int32_t n_rows = qn_exec_n_rows(x, s);
    for (int32_t i = 0, n; i < n_rows; i += n) {
        n = n_rows - i < QN_GATHERED ? n_rows - i : QN_GATHERED;
        const qn_act act = rows_of_head(x, a, head, i, n, i_thread);
        float *out = qn_exec_row(x, a->out, i) + a->out_at + head * a->out_stride + begin * QN_PANEL;
        const int64_t width = qn_multiply(x, a->w, head, begin, end, &act, n, NULL, i_thread, out, x->stride[a->out]);
        for (int32_t j = 0; j < n && a->scale != 1; j++) x->k->scale(out + j * x->stride[a->out], a->scale, width, out + j * x->stride[a->out]);
    }
}

/* The panels of all heads as one run, cut evenly. */
void qn_op_by_head(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_weight *w = s->u.by_head.w;
    int64_t begin, end;
    qn_split(w->n_parts * w->n_panels, i_thread, n_threads, &begin, &end);
    for (int64_t p = begin, next; p < end; p = next) {
        const int64_t head = p / w->n_panels, first = head * w->n_panels;
        next = first + w->n_panels < end ? first + w->n_panels : end;
        run_head(x, s, (int32_t)head, p - first, next - first, i_thread);
    }
}

void qn_cost_by_head(const qn_exec *x, const qn_stage *s, qn_cost *c)
{
    const qn_weight *w = s->u.by_head.w;
    if (qn_exec_n_rows(x, s) == 0) return;
    c->bytes += (double)w->n_bytes;
    c->mul_adds += (double)w->n_rows * (double)w->n_cols * w->n_parts * qn_exec_n_rows(x, s);
}

#include "src/ops/exec.h"

/* What follows a product in the rows that this thread has just written: bias, residual, the head's scale and cap. */
static void finish(const qn_exec *x, const qn_matmul_stage_args *a, const qn_mat *m, float *out, int64_t out_stride, int64_t row,
                   int64_t n_rows, int32_t n_tokens)
{
    for (int32_t t = 0; t < n_tokens; t++) {
        float *o = out + (int64_t)t * out_stride;
        if (m->bias) x->k->add(o, m->bias + row, n_rows, o);
        if (m->add_to_x) {
            float *residual = qn_exec_row(x, QN_REG_X, t) + row;
            x->k->add(residual, o, n_rows, residual);
        }
        if (a->logit_scale != 1) x->k->scale(o, a->logit_scale, n_rows, o);
        if (a->softcap > 0) x->k->softcap(o, a->softcap, n_rows, o);
    }
}

/* Panels [begin, end) of one matrix, for all rows of activations. */
static void run_mat(const qn_exec *x, const qn_matmul_stage_args *a, const qn_mat *m, int64_t begin, int64_t end, int32_t i_thread)
{
    const qn_weight *w = m->w;
    const int64_t row = begin * QN_PANEL, row_end = end * QN_PANEL < w->n_rows ? end * QN_PANEL : w->n_rows;
    const int32_t n_tokens = a->to_logits ? x->batch->n_outputs : x->batch->n;
    const int64_t out_stride = a->to_logits ? w->n_rows : x->stride[m->out];
    const qn_matmul_args args = {
        .w = w->panels + (size_t)begin * w->panel_bytes,
        .panel_bytes = w->panel_bytes,
        .n_panels = end - begin,
        .n_rows = row_end - row,
        .n_cols = w->n_cols,
        .n_tokens = n_tokens,
        .act = { .x = x->reg[QN_REG_N],
                 .q = x->act_q,
                 .d = x->act_d,
                 .s = x->act_s,
                 .planes = x->k->split_a16 ? x->act_planes : NULL,
                 .x_stride = x->stride[QN_REG_N],
                 .q_stride = x->act_stride },
        .out = (a->to_logits ? x->batch->logits : x->reg[m->out]) + row,
        .out_stride = out_stride,
        .fmt = w->fmt,
        .scratch = qn_exec_scratch(x, i_thread),
    };
    x->k->matmul[w->fmt->id].run(&args);
    finish(x, a, m, args.out, out_stride, row, args.n_rows, n_tokens);
}

void qn_cost_matmul(const qn_exec *x, const qn_stage *s, qn_cost *c)
{
    const qn_matmul_stage_args *a = &s->u.matmul;
    const int32_t n_tokens = a->to_logits ? x->batch->n_outputs : x->batch->n;
    for (int32_t i = 0; i < a->n_mats && n_tokens; i++) {
        c->bytes += (double)a->mat[i].w->n_bytes;
        c->mul_adds += (double)a->mat[i].w->n_rows * (double)a->mat[i].w->n_cols * n_tokens;
    }
}

/* All matrices of the stage as one run of panels, cut evenly: a thread gets a contiguous part of the weights. */
void qn_op_matmul(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_matmul_stage_args *a = &s->u.matmul;
    if (a->to_logits && x->batch->n_outputs == 0) return;
    int64_t n_panels = 0, begin, end;
    for (int32_t i = 0; i < a->n_mats; i++) n_panels += a->mat[i].w->n_panels;
    qn_split(n_panels, i_thread, n_threads, &begin, &end);
    int64_t base = 0;
    for (int32_t i = 0; i < a->n_mats; i++) {
        const int64_t n = a->mat[i].w->n_panels;
        const int64_t lo = begin > base ? begin - base : 0, hi = end - base < n ? end - base : n;
        if (lo < hi) run_mat(x, a, &a->mat[i], lo, hi, i_thread);
        base += n;
    }
}

#include "src/ops/exec.h"

#include <string.h>

static void norm_row(const qn_exec *x, const qn_norm *n, const float *in, int64_t width, float *out)
{
    if (n->kind == QN_NORM_RMS) x->k->rms_norm(in, n->w, width, n->eps, out);
    else if (n->kind == QN_NORM_LAYER) x->k->layer_norm(in, n->w, n->b, width, n->eps, out);
}

static void quantize_row(const qn_exec *x, const float *in, int64_t i_row, int64_t begin, int64_t end)
{
    const int64_t at = i_row * x->act_stride + begin, block = at / QN_ACT_BLOCK;
    x->k->quantize_a16(in + begin, end - begin, x->act_q + at, x->act_d + block, x->act_s + block);
    if (x->k->split_a16) x->k->split_a16(x->act_q + at, (end - begin + QN_ACT_BLOCK - 1) / QN_ACT_BLOCK, x->act_planes + 2 * at);
}

/* Rows for the next matrices: x += post(from) where there is a post-norm, N = pre(x), and N as A16. A row belongs to one thread. */
void qn_op_prepare(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_prepare_args *a = &s->u.prepare;
    const qn_batch *b = x->batch;
    int64_t begin, end;
    qn_split(a->only_outputs ? b->n_outputs : b->n, i_thread, n_threads, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        const int32_t t = a->only_outputs ? b->output[i] : (int32_t)i;
        const float *row = qn_exec_row(x, a->from, t);
        float *n = qn_exec_row(x, QN_REG_N, (int32_t)i);
        if (a->post.kind != QN_NORM_NONE) {
            float *residual = qn_exec_row(x, QN_REG_X, t);
            norm_row(x, &a->post, row, a->width, n);
            x->k->add(residual, n, a->width, residual);
            row = residual;
        }
        if (a->pre.kind != QN_NORM_NONE) {
            norm_row(x, &a->pre, row, a->width, n);
            row = n;
        } else if (s->want_f32) {
            memcpy(n, row, (size_t)a->width * sizeof *n);
        }
        if (s->want_a16) quantize_row(x, row, i, 0, a->width);
    }
}

/* N = act(g) * u, and as A16. Cut into pieces of a row, so that one token keeps all threads at work. */
void qn_op_glu(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    enum { PIECE = 256 }; /* a multiple of QN_ACT_BLOCK; 256 floats are under a tenth of a microsecond of work */
    const qn_glu_args *a = &s->u.glu;
    const int64_t n_pieces = (a->width + PIECE - 1) / PIECE;
    int64_t begin, end;
    qn_split(n_pieces * x->batch->n, i_thread, n_threads, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        const int32_t t = (int32_t)(i / n_pieces);
        const int64_t at = i % n_pieces * PIECE, stop = at + PIECE < a->width ? at + PIECE : a->width;
        const float *g = qn_exec_row(x, QN_REG_G, t) + at, *u = qn_exec_row(x, QN_REG_U, t) + at;
        float *n = qn_exec_row(x, QN_REG_N, t);
        (a->kind == QN_GLU_SILU ? x->k->swiglu : x->k->geglu)(g, u, stop - at, n + at);
        if (s->want_a16) quantize_row(x, n, t, at, stop);
    }
}

#include "src/ops/rows.h"

#include "src/ops/exec.h"

#include <string.h>

void qn_norm_row(const qn_exec *x, const qn_norm *n, const float *in, int64_t width, float *out)
{
    const int64_t group = n->n_groups ? width / n->n_groups : width;
    for (int64_t at = 0; at < width && group < width; at += group) {
        const qn_norm part = { .kind = n->kind, .eps = n->eps, .w = n->w ? n->w + at : NULL, .b = n->b ? n->b + at : NULL };
        qn_norm_row(x, &part, in + at, group, out + at);
    }
    if (group < width) return;
    if (n->kind == QN_NORM_RMS) {
        x->k->rms_norm(in, n->w, width, n->eps, out);
        if (n->b) x->k->add(out, n->b, width, out);
    } else if (n->kind == QN_NORM_LAYER) {
        x->k->layer_norm(in, n->w, n->b, width, n->eps, out);
    } else if (out != in) {
        memcpy(out, in, (size_t)width * sizeof *out);
    }
}

void qn_rows_place(qn_placer *p, qn_rows *r, size_t n_rows, int64_t width, int64_t norm_width)
{
    const int64_t stride = qn_row_stride(width, QN_ACT_BLOCK);
    const size_t n_blocks = n_rows * (size_t)(stride / QN_ACT_BLOCK);
    r->stride = stride;
    r->x_stride = norm_width ? qn_row_stride(norm_width, 16) : 0;
    r->x = qn_place(p, n_rows * (size_t)r->x_stride, sizeof *r->x);
    r->q = qn_place(p, n_rows * (size_t)stride, sizeof *r->q);
    r->q8 = (int8_t *)r->q;
    r->planes = qn_place(p, n_blocks, QN_SPLIT_MAX);
    r->d = qn_place(p, n_blocks, sizeof *r->d);
    r->s = qn_place(p, n_blocks, sizeof *r->s);
}

void qn_rows_quantize(const qn_exec *x, const float *row, int64_t width, const qn_rows *to, int64_t i)
{
    const int64_t at = i * to->stride, block = at / QN_ACT_BLOCK;
    if (x->k->a8) {
        x->k->quantize_a8(row, width, to->q8 + at, to->d + block, to->s + block);
        return;
    }
    x->k->quantize_a16(row, width, to->q + at, to->d + block, to->s + block);
    if (x->k->split_a16) x->k->split_a16(to->q + at, (width + QN_ACT_BLOCK - 1) / QN_ACT_BLOCK, to->planes + block * x->k->split_bytes);
}

/* A token is a task. */
void qn_op_norm(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_norm_args *a = &s->u.norm;
    int64_t begin, end;
    qn_split(qn_exec_n_rows(x, s), i_thread, n_threads, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        qn_norm_row(x, &a->norm, qn_exec_row(x, a->from, (int32_t)i), a->width, qn_exec_row(x, a->at, (int32_t)i));
    }
}

void qn_rows_moved(const qn_exec *x, const qn_input *in, int32_t i, float *out)
{
    qn_norm_row(x, &in->post, qn_exec_row(x, in->from, i), in->width, out);
    x->k->add(qn_exec_row(x, in->x, i), out, in->width, out);
    if (in->scale != 1) x->k->scale(out, in->scale, in->width, out);
}

/* Columns [begin, end) of the residual stream move on. Every thread may have made the whole row; each keeps its own part of it.
 */
static void keep_residual(const qn_exec *x, const qn_input *in, int32_t i, const float *row, int64_t begin, int64_t end)
{
    float *to = qn_exec_row(x, in->to, i);
    for (int64_t c = begin; c < end; c++) to[c] = row[c];
}

/* Row i, into the i-th of `to`; of a residual stream that moves, columns [begin, end) are kept. */
static void make_row(const qn_exec *x, const qn_input *in, int32_t i, const qn_rows *to, int64_t begin, int64_t end)
{
    const float *row = qn_exec_row(x, in->from, i);
    float *out = to->x + i * to->x_stride;
    if (in->post.kind != QN_NORM_NONE) {
        qn_rows_moved(x, in, i, out);
        keep_residual(x, in, i, out, begin, end);
        row = out;
    }
    if (in->pre.kind != QN_NORM_NONE) {
        qn_norm_row(x, &in->pre, row, in->width, out);
        row = out;
    }
    if (in->quantised) qn_rows_quantize(x, row, in->width, to, i);
}

qn_act qn_rows_act(const qn_exec *x, const qn_rows *r, int64_t i, const float *floats, int64_t stride)
{
    const qn_act all = {
        .x = floats,
        .q = r->q,
        .q8 = r->q8,
        .d = r->d,
        .s = r->s,
        .planes = x->k->split_a16 && !x->k->a8 ? r->planes : NULL,
        .x_stride = stride,
        .q_stride = r->stride,
    };
    return qn_act_from(x, &all, i);
}

qn_act qn_act_from(const qn_exec *x, const qn_act *act, int64_t i)
{
    const int64_t q = i * act->q_stride, block = q / QN_ACT_BLOCK;
    qn_act a = *act;
    a.x += i * act->x_stride;
    a.q += q;
    a.q8 += q;
    a.d += block;
    a.s += block;
    if (a.planes) a.planes += block * x->k->split_bytes;
    return a;
}

qn_act qn_rows_make(const qn_exec *x, const qn_stage *s, const qn_input *in, int32_t i_thread, int32_t n_threads)
{
    const int32_t n = qn_exec_n_rows(x, s);
    const bool own = n <= QN_OWN_ROWS;
    const qn_rows *to = own ? &x->own[i_thread] : &x->shared;
    int64_t begin, end;
    if (own) {
        qn_split(in->width, i_thread, n_threads, &begin, &end);
        for (int32_t i = 0; i < n; i++) make_row(x, in, i, to, begin, end);
    } else {
        qn_split(n, i_thread, n_threads, &begin, &end);
        for (int64_t i = begin; i < end; i++) make_row(x, in, (int32_t)i, to, 0, in->width);
        qn_pool_barrier(x->pool, i_thread);
    }
    const bool as_is = in->post.kind == QN_NORM_NONE && in->pre.kind == QN_NORM_NONE;
    return qn_rows_act(x, to, 0, as_is ? x->reg[in->from] : to->x, as_is ? x->stride[in->from] : to->x_stride);
}

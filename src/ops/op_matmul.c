#include "src/ops/glu.h"
#include "src/ops/multiply.h"

/* The work of one thread in one stage. */
typedef struct work {
    const qn_exec *x;
    const qn_stage *s;
    const qn_matmul_stage_args *a;
    qn_act act;
    int32_t n_tokens, i_thread;
    float *tile[2]; /* [n_tokens][rows of the tile] */
} work;

/* What follows the product of row t, from output `first` on: bounds, activation, a factor. */
static void finish_row(const work *k, const qn_mat *m, int32_t t, int64_t first, int64_t n, float *out)
{
    if (m->clamp > 0) k->x->k->clamp(out, m->clamp, n, out);
    if (m->act) qn_unary_row(k->x->k, m->act, out, n, out);
    if (m->multiplied) k->x->k->mul(out, qn_exec_row(k->x, m->by.reg, qn_exec_token(k->x, k->s, t)) + m->by.at + first, n, out);
}

/* Panels [begin, end) of a matrix times all rows, and what follows. @return rows */
static int64_t multiply(const work *k, const qn_mat *m, int64_t begin, int64_t end, float *out, int64_t out_stride)
{
    const int64_t n = qn_multiply(k->x, m->w, 0, begin, end, &k->act, k->n_tokens, m->bias, k->i_thread, out, out_stride);
    if (m->clamp > 0 || m->act || m->multiplied)
        for (int32_t t = 0; t < k->n_tokens; t++) finish_row(k, m, t, begin * QN_PANEL, n, out + t * out_stride);
    return n;
}

static void gate_tile(const work *k, int64_t begin, int64_t end)
{
    const qn_matmul_stage_args *a = k->a;
    const int64_t stride = (end - begin) * QN_PANEL, n = multiply(k, &a->mat[0], begin, end, k->tile[0], stride);
    (void)multiply(k, &a->mat[1], begin, end, k->tile[1], stride);
    for (int32_t t = 0; t < k->n_tokens; t++) {
        float *gate = k->tile[0] + t * stride, *up = k->tile[1] + t * stride, *out = qn_exec_row(k->x, a->mat[0].out, t) + begin * QN_PANEL;
        if (a->mat[0].most > 0) qn_glu_limited_row(k->x->k, a->mat[0].most, gate, up, n, out);
        else qn_glu_row(k->x->k, a->glu, gate, up, n, out);
    }
}

/* While the logits are in the nearest cache: whoever looks for the highest of a large vocabulary need not read it all again. */
static void note_extremes(const qn_exec *x, int32_t t, int64_t first, const float *logits, int64_t n)
{
    qn_extremes *group = x->extremes + (int64_t)t * x->n_groups + first / QN_RANK_GROUP;
    for (int64_t i = 0; i < n; i += QN_RANK_GROUP) *group++ = qn_extremes_of(logits + i, n - i < QN_RANK_GROUP ? n - i : QN_RANK_GROUP);
}

static void logits_tile(const work *k, int64_t begin, int64_t end)
{
    const qn_matmul_stage_args *a = k->a;
    const int64_t stride = a->mat[0].w->n_rows;
    float *out = k->x->batch->logits + begin * QN_PANEL;
    const int64_t n = multiply(k, &a->mat[0], begin, end, out, stride);
    for (int32_t t = 0; t < k->n_tokens; t++, out += stride) {
        if (a->logit_scale != 1) k->x->k->scale(out, a->logit_scale, n, out);
        if (a->softcap > 0) k->x->k->softcap(out, a->softcap, n, out);
        if (k->n_tokens <= QN_OWN_ROWS) note_extremes(k->x, t, begin * QN_PANEL, out, n);
    }
}

static void plain_tile(const work *k, const qn_mat *m, int64_t begin, int64_t end)
{
    float *out = k->x->reg[m->out] + begin * QN_PANEL;
    if (!m->adds) {
        (void)multiply(k, m, begin, end, out, k->x->stride[m->out]);
        return;
    }
    const int64_t stride = (end - begin) * QN_PANEL, n = multiply(k, m, begin, end, k->tile[0], stride);
    for (int32_t t = 0; t < k->n_tokens; t++, out += k->x->stride[m->out]) {
        float *row = k->tile[0] + t * stride, share = m->scale;
        if (m->gated) {
            k->x->k->sigmoid(qn_exec_row(k->x, m->gate, t), 1, &share);
            share *= m->scale;
        }
        if (share != 1) k->x->k->scale(row, share, n, row);
        k->x->k->add(out, row, n, out);
    }
}

/* Panels [begin, end) of matrix m, tile by tile. */
static void run_tiles(const work *k, const qn_mat *m, int64_t begin, int64_t end)
{
    const int64_t step = qn_tile_panels(k->n_tokens);
    for (int64_t p = begin; p < end; p += step) {
        const int64_t stop = p + step < end ? p + step : end;
        if (k->a->to_logits)
            logits_tile(k, p, stop);
        else if (k->a->glu)
            gate_tile(k, p, stop);
        else
            plain_tile(k, m, p, stop);
    }
}

/* Whole units of panels to a thread. */
static void split_panels(int64_t n_panels, int64_t unit, int32_t i_thread, int32_t n_threads, int64_t *begin, int64_t *end)
{
    qn_split((n_panels + unit - 1) / unit, i_thread, n_threads, begin, end);
    *begin *= unit;
    *end = *end * unit < n_panels ? *end * unit : n_panels;
}

/* All matrices of the stage as one run of panels, cut evenly: a thread gets a contiguous part of the weights. Gate and up are cut
 * alike, so that a thread has both rows of a pair. */
void qn_op_matmul(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_matmul_stage_args *a = &s->u.matmul;
    float *tile = x->tile + i_thread * x->tile_stride;
    work k = { .x = x,
               .s = s,
               .a = a,
               .n_tokens = qn_exec_n_rows(x, s),
               .i_thread = i_thread,
               .tile = { tile, tile + x->tile_stride / 2 } };
    if (k.n_tokens == 0) return;
    k.act = qn_rows_make(x, s, &a->in, i_thread, n_threads);
    const qn_observer *o = x->observer;
    if (o && !o->rows(o->user, s, k.act.x, k.act.x_stride, k.n_tokens, i_thread, n_threads)) return;
    const int32_t n_mats = a->glu ? 1 : a->n_mats;
    int64_t n_panels = 0, begin, end;
    for (int32_t i = 0; i < n_mats; i++) n_panels += a->mat[i].w->n_panels;
    split_panels(n_panels, a->to_logits ? QN_RANK_GROUP / QN_PANEL : 1, i_thread, n_threads, &begin, &end);
    int64_t base = 0;
    for (int32_t i = 0; i < n_mats; i++) {
        const int64_t n = a->mat[i].w->n_panels;
        const int64_t lo = begin > base ? begin - base : 0, hi = end - base < n ? end - base : n;
        if (lo < hi) run_tiles(&k, &a->mat[i], lo, hi);
        base += n;
    }
}

void qn_cost_matmul(const qn_exec *x, const qn_stage *s, qn_cost *c)
{
    const qn_matmul_stage_args *a = &s->u.matmul;
    const int32_t n_tokens = qn_exec_n_rows(x, s);
    for (int32_t i = 0; i < a->n_mats && n_tokens; i++) {
        c->bytes += (double)a->mat[i].w->n_bytes;
        c->mul_adds += (double)a->mat[i].w->n_rows * (double)a->mat[i].w->n_cols * n_tokens;
    }
}

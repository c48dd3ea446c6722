#include "src/ops/glu.h"
#include "src/ops/multiply.h"
#include "src/ops/pairs.h"

#include <math.h>
#include <string.h>

/* The work of one thread in one of the two stages. */
typedef struct work {
    const qn_exec *x;
    const qn_experts_args *a;
    const qn_pairs *pairs;
    qn_act act;              /* of the tokens; in "experts down" of the pairs                */
    int32_t i_thread;
    float *tile[2];
} work;

static work work_of(const qn_exec *x, const qn_stage *s, int32_t i_thread)
{
    float *tile = x->tile + i_thread * x->tile_stride;
    return (work){ .x = x, .a = &s->u.experts, .i_thread = i_thread, .tile = { tile, tile + x->tile_stride / 2 } };
}

/* The rows of pairs [p, p + n) side by side: a token's row is where the token is. */
static qn_act gather(const work *k, int32_t p, int32_t n)
{
    const qn_exec *x = k->x;
    const qn_input *in = &k->a->in;
    const qn_rows *to = &x->gathered[k->i_thread];
    if (n == 1) return qn_act_from(x, &k->act, k->pairs->token[p]);
    const size_t n_blocks = (size_t)((in->width + QN_ACT_BLOCK - 1) / QN_ACT_BLOCK);
    for (int32_t i = 0; i < n; i++) {
        const qn_act a = qn_act_from(x, &k->act, k->pairs->token[p + i]);
        const int64_t at = i * to->stride, block = at / QN_ACT_BLOCK;
        if (!in->quantised) {
            memcpy(to->x + i * to->x_stride, a.x, (size_t)in->width * sizeof *a.x);
            continue;
        }
        if (x->k->a8) memcpy(to->q8 + at, a.q8, n_blocks * QN_ACT_BLOCK);
        else memcpy(to->q + at, a.q, n_blocks * QN_ACT_BLOCK * sizeof *a.q);
        memcpy(to->d + block, a.d, n_blocks * sizeof *a.d);
        memcpy(to->s + block, a.s, n_blocks * sizeof *a.s);
        if (a.planes) memcpy(to->planes + block * x->k->split_bytes, a.planes, n_blocks * (size_t)x->k->split_bytes);
    }
    return qn_rows_act(x, to, 0, to->x, to->x_stride);
}

/* ---- up ---- */

static const float *bias_of(const float *bias, const qn_weight *w, int32_t e)
{
    return bias ? bias + e * w->n_rows : NULL;
}

/* Panels [begin, end) of expert e times the rows of pairs [p, p + n). */
static void up_tile(const work *k, int32_t e, const qn_act *act, int32_t p, int32_t n, int64_t begin, int64_t end)
{
    const qn_exec *x = k->x;
    const qn_experts *w = &k->a->experts;
    const int64_t stride = (end - begin) * QN_PANEL;
    if (w->gate) (void)qn_multiply(x, w->gate, e, begin, end, act, n, bias_of(w->gate_b, w->gate, e), k->i_thread, k->tile[0], stride);
    const int64_t n_rows = qn_multiply(x, w->up, e, begin, end, act, n, bias_of(w->up_b, w->up, e), k->i_thread, k->tile[1], stride);
    for (int32_t i = 0; i < n; i++) {
        float *gate = k->tile[0] + i * stride, *up = k->tile[1] + i * stride, *out = x->pairs.up + (int64_t)(p + i) * x->pairs.up_stride + begin * QN_PANEL;
        if (w->weighs_input) {
            x->k->scale(up, k->pairs->weight[p + i], n_rows, up);
            if (w->gate) x->k->scale(gate, k->pairs->weight[p + i], n_rows, gate);
        }
        if (w->gate && w->most > 0) qn_glu_limited_row(x->k, w->most, gate, up, n_rows, out);
        else if (w->gate) qn_glu_row(x->k, k->a->glu, gate, up, n_rows, out);
        else qn_unary_row(x->k, k->a->glu, up, n_rows, out);
    }
}

static void up_expert(const work *k, int32_t e, int64_t begin, int64_t end)
{
    const int32_t last = k->pairs->begin[e + 1];
    for (int32_t p = k->pairs->begin[e], n; p < last; p += n) {
        n = last - p < QN_GATHERED ? last - p : QN_GATHERED;
        const qn_act act = gather(k, p, n);
        const int64_t step = qn_tile_panels(n);
        for (int64_t q = begin; q < end; q += step) up_tile(k, e, &act, p, n, q, q + step < end ? q + step : end);
    }
}

/* What a panel of an expert costs: reading it takes about as long as multiplying it by four rows. */
static int64_t panel_cost(const qn_pairs *p, int32_t e)
{
    const int32_t n = p->begin[e + 1] - p->begin[e];
    return n ? 4 + n : 0;
}

/* The panels of all chosen experts as one run, cut evenly by what they cost: a thread gets a contiguous part. */
void qn_op_experts_up(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    work k = work_of(x, s, i_thread);
    const qn_experts *w = &k.a->experts;
    const int64_t n_panels = w->up->n_panels;
    int64_t total = 0, begin, end, at = 0;
    if (qn_exec_n_rows(x, s) == 0) return;
    k.pairs = qn_pairs_choose(x, s, i_thread, n_threads);
    qn_pairs_pack(x, s, k.pairs, i_thread, n_threads);
    k.act = qn_rows_make(x, s, &k.a->in, i_thread, n_threads);
    for (int32_t e = 0; e < w->routing.n_expert; e++) total += n_panels * panel_cost(k.pairs, e);
    qn_split(total, i_thread, n_threads, &begin, &end);
    for (int32_t e = 0; e < w->routing.n_expert && at < end; e++) {
        const int64_t cost = panel_cost(k.pairs, e), next = at + n_panels * cost;
        if (cost && next > begin) {
            const int64_t lo = begin > at ? (begin - at + cost - 1) / cost : 0, hi = end < next ? (end - at + cost - 1) / cost : n_panels;
            if (lo < hi) up_expert(&k, e, lo, hi);
        }
        at = next;
    }
}

/* ---- down ---- */

static qn_act make_pair_rows(const qn_exec *x, const qn_stage *s, const qn_pairs *p, int32_t i_thread, int32_t n_threads)
{
    const qn_experts_args *a = &s->u.experts;
    const qn_pairs_bufs *b = &x->pairs;
    const bool own = qn_exec_n_rows(x, s) <= QN_OWN_ROWS;
    const qn_rows *to = own ? &b->own_rows[i_thread] : &b->rows;
    int64_t begin = 0, end = p->begin[a->experts.routing.n_expert];
    if (!own) qn_split(end, i_thread, n_threads, &begin, &end);
    for (int64_t i = begin; i < end && a->down_quantised; i++) qn_rows_quantize(x, b->up + i * b->up_stride, a->experts.down->n_cols, to, i);
    if (!own && a->down_quantised) qn_pool_barrier(x->pool, i_thread);
    return qn_rows_act(x, to, 0, b->up, b->up_stride);
}

/* Panels [begin, end) of expert e's results, weighted, into the sums of their tokens. */
static void down_tile(const work *k, int32_t e, const qn_act *act, int64_t begin, int64_t end)
{
    const qn_exec *x = k->x;
    const qn_weight *w = k->a->experts.down;
    const int32_t first = k->pairs->begin[e], n = k->pairs->begin[e + 1] - first;
    const int64_t stride = (end - begin) * QN_PANEL;
    const int64_t n_rows = qn_multiply(x, w, e, begin, end, act, n, bias_of(k->a->experts.down_b, w, e), k->i_thread, k->tile[0], stride);
    for (int32_t i = 0; i < n; i++) {
        float *result = k->tile[0] + i * stride, *sum = qn_exec_row(x, QN_REG_T, k->pairs->token[first + i]) + begin * QN_PANEL;
        if (!k->a->experts.weighs_input) x->k->scale(result, k->pairs->weight[first + i], n_rows, result);
        x->k->add(sum, result, n_rows, sum);
    }
}

/* A thread has its outputs, of all experts: it alone adds to them. */
void qn_op_experts_down(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    work k = work_of(x, s, i_thread);
    const qn_weight *w = k.a->experts.down;
    const int32_t n_tokens = qn_exec_n_rows(x, s);
    int64_t begin, end;
    if (n_tokens == 0) return;
    k.pairs = qn_pairs_chosen(x, s, i_thread);
    k.act = make_pair_rows(x, s, k.pairs, i_thread, n_threads);
    qn_split(w->n_panels, i_thread, n_threads, &begin, &end);
    const int64_t first = begin * QN_PANEL, last = end * QN_PANEL < w->n_rows ? end * QN_PANEL : w->n_rows;
    if (first >= last) return;
    for (int32_t t = 0; t < n_tokens; t++) memset(qn_exec_row(x, QN_REG_T, t) + first, 0, (size_t)(last - first) * sizeof(float));
    for (int32_t e = 0; e < k.a->experts.routing.n_expert; e++) {
        const int32_t n = k.pairs->begin[e + 1] - k.pairs->begin[e];
        const qn_act act = qn_act_from(x, &k.act, k.pairs->begin[e]);
        const int64_t step = n ? qn_tile_panels(n) : 1;
        for (int64_t p = begin; p < end && n; p += step) down_tile(&k, e, &act, p, p + step < end ? p + step : end);
    }
    for (int32_t t = 0; t < n_tokens; t++) {
        float *out = qn_exec_row(x, k.a->out, t) + first, *sum = qn_exec_row(x, QN_REG_T, t) + first;
        if (k.a->scale != 1) x->k->scale(sum, k.a->scale, last - first, sum);
        if (k.a->adds) x->k->add(out, sum, last - first, out);
    }
}

/* ---- cost ---- */

/* Experts that n tokens are expected to choose, each of them alone as likely as the others. */
void qn_cost_experts(const qn_exec *x, const qn_stage *s, qn_cost *c)
{
    const qn_experts *e = &s->u.experts.experts;
    const qn_weight *up[] = { e->gate, e->up }, *down[] = { e->down };
    const bool is_up = s->run == qn_op_experts_up;
    const int32_t n_tokens = qn_exec_n_rows(x, s);
    const double share = (double)e->routing.n_used / e->routing.n_expert;
    for (int i = 0; i < (is_up ? 2 : 1); i++) {
        const qn_weight *w = is_up ? up[i] : down[i];
        if (!w) continue;
        c->bytes += (double)w->n_bytes * (1 - pow(1 - share, n_tokens));
        c->mul_adds += (double)w->n_rows * (double)w->n_cols * w->n_parts * share * n_tokens;
    }
}

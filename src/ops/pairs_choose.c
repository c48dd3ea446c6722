#include "src/ops/pairs.h"

#include <math.h>
#include <string.h>

static void place_pairs(qn_placer *p, qn_pairs *pairs, size_t n_tokens, const qn_plan *plan)
{
    const size_t n = n_tokens * (size_t)plan->max_used;
    pairs->choice = qn_place(p, n, sizeof *pairs->choice);
    pairs->share = qn_place(p, n, sizeof *pairs->share);
    pairs->token = qn_place(p, n, sizeof *pairs->token);
    pairs->weight = qn_place(p, n, sizeof *pairs->weight);
    pairs->begin = qn_place(p, (size_t)plan->max_experts + 1, sizeof *pairs->begin);
}

void qn_pairs_place(qn_placer *p, qn_exec *x, const qn_plan *plan, int32_t n_chunk, int32_t n_threads)
{
    qn_pairs_bufs *b = &x->pairs;
    const size_t n = (size_t)n_threads, n_pairs = (size_t)n_chunk * (size_t)plan->max_used;
    place_pairs(p, &b->shared, (size_t)n_chunk, plan);
    b->up_stride = qn_row_stride(plan->pair_width, 16);
    b->up = qn_place(p, n_pairs * (size_t)b->up_stride, sizeof *b->up);
    qn_rows_place(p, &b->rows, n_pairs, plan->pair_width, 0);
    b->ready = qn_place(p, (size_t)plan->n_ready, sizeof *b->ready);
    b->own = qn_place(p, n, sizeof *b->own);
    b->own_rows = qn_place(p, n, sizeof *b->own_rows);
    for (size_t i = 0; i < n; i++) {
        qn_pairs own;
        qn_rows rows;
        place_pairs(p, &own, QN_OWN_ROWS, plan);
        qn_rows_place(p, &rows, QN_OWN_ROWS * (size_t)plan->max_used, plan->pair_width, 0);
        if (!p->memory) continue;
        b->own[i] = own;
        b->own_rows[i] = rows;
    }
}

/* ---- one token ---- */

/* The best of n that is not barred, the first among equals; -1: all are barred. */
static int32_t best(const float *score, const uint8_t *barred, int32_t n)
{
    int32_t at = -1;
    for (int32_t i = 0; i < n; i++)
        if (!barred[i] && (at < 0 || score[i] > score[at])) at = i;
    return at;
}

/* Bar the experts of all groups but the best. @param work [n_groups] floats */
static void bar_groups(const qn_routing *r, const float *score, uint8_t *barred, float *work)
{
    const int32_t n = r->n_expert / r->n_groups;
    uint8_t *taken = (uint8_t *)(work + r->n_groups);
    for (int32_t g = 0; g < r->n_groups; g++) {
        const float *s = score + g * n;
        const int32_t first = best(s, barred + g * n, n);
        barred[g * n + first] = 1;
        const int32_t second = best(s, barred + g * n, n);
        barred[g * n + first] = 0;
        work[g] = s[first] + (second >= 0 ? s[second] : 0);
        taken[g] = 0;
    }
    for (int32_t i = 0; i < r->n_groups_used; i++) taken[best(work, taken, r->n_groups)] = 1;
    for (int32_t e = 0; e < r->n_expert; e++) barred[e] = !taken[e / n];
}

/* @param score [n_expert]  @param mark [n_expert] 1: chosen  @param work floats, 3 n_expert */
static void mark_best(const qn_routing *r, const float *score, uint8_t *mark, float *work)
{
    uint8_t *barred = (uint8_t *)work;
    memset(barred, 0, (size_t)r->n_expert);
    memset(mark, 0, (size_t)r->n_expert);
    if (r->n_groups > 1) bar_groups(r, score, barred, work + r->n_expert);
    for (int32_t i = 0; i < r->n_used; i++) {
        const int32_t e = best(score, barred, r->n_expert);
        barred[e] = mark[e] = 1;
    }
}

static void weigh(const qn_exec *x, const qn_routing *r, const int32_t *choice, float *share)
{
    float sum = 0;
    if (r->gate == QN_GATE_SOFTMAX_CHOSEN) x->k->softmax(share, r->n_used);
    for (int32_t i = 0; i < r->n_used; i++) sum += share[i];
    if (!(sum > 0x1p-14f)) sum = 0x1p-14f;
    for (int32_t i = 0; i < r->n_used && r->normalised; i++) share[i] /= sum;
    if (r->scale != 1) x->k->scale(share, r->scale, r->n_used, share);
    for (int32_t i = 0; i < r->n_used && r->expert_scale; i++) share[i] *= r->expert_scale[choice[i]];
}

static void choose(const qn_exec *x, const qn_routing *r, int32_t i_row, int32_t i_thread, const qn_pairs *to)
{
    const size_t n = (size_t)r->n_expert;
    float *p = qn_exec_scratch(x, i_thread), *score = p + n, *work = score + n;
    uint8_t *mark = (uint8_t *)(work + 3 * n);
    int32_t *choice = to->choice + (int64_t)i_row * r->n_used, at = 0;
    float *share = to->share + (int64_t)i_row * r->n_used;
    memcpy(p, qn_exec_row(x, QN_REG_R, i_row), n * sizeof *p);
    if (r->logit_scale != 0) x->k->scale(p, r->logit_scale, r->n_expert, p);
    if (r->logit_bias) x->k->add(p, r->logit_bias, r->n_expert, p);
    if (r->gate == QN_GATE_SOFTMAX) x->k->softmax(p, r->n_expert);
    if (r->gate == QN_GATE_SIGMOID) x->k->sigmoid(p, r->n_expert, p);
    for (size_t e = 0; e < n; e++) {
        score[e] = r->bias ? p[e] + r->bias[e] : p[e];
        if (!(score[e] == score[e])) score[e] = -INFINITY;
    }
    mark_best(r, score, mark, work);
    for (int32_t e = 0; e < r->n_expert; e++) {
        if (!mark[e]) continue;
        choice[at] = e;
        share[at++] = p[e];
    }
    weigh(x, r, choice, share);
}

/* ---- all of them ---- */

static void group(const qn_pairs *p, const qn_routing *r, int32_t n_tokens)
{
    const int32_t n = n_tokens * r->n_used;
    memset(p->begin, 0, ((size_t)r->n_expert + 1) * sizeof *p->begin);
    for (int32_t i = 0; i < n; i++) p->begin[p->choice[i] + 1]++;
    for (int32_t e = 0; e < r->n_expert; e++) p->begin[e + 1] += p->begin[e];
    for (int32_t i = 0; i < n; i++) {
        const int32_t at = p->begin[p->choice[i]]++;
        p->token[at] = i / r->n_used;
        p->weight[at] = p->share[i];
    }
    memmove(p->begin + 1, p->begin, (size_t)r->n_expert * sizeof *p->begin); /* each has moved to the next one's begin */
    p->begin[0] = 0;
}

const qn_pairs *qn_pairs_choose(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_routing *r = &s->u.experts.experts.routing;
    const int32_t n = qn_exec_n_rows(x, s);
    const qn_pairs *to = qn_pairs_chosen(x, s, i_thread);
    const bool own = n <= QN_OWN_ROWS;
    int64_t begin = 0, end = n;
    if (!own) qn_split(n, i_thread, n_threads, &begin, &end);
    for (int64_t i = begin; i < end; i++) choose(x, r, (int32_t)i, i_thread, to);
    if (!own) qn_pool_barrier(x->pool, i_thread);
    if (own || i_thread == 0) group(to, r, n);
    if (!own) qn_pool_barrier(x->pool, i_thread);
    return to;
}

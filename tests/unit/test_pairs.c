/* Which experts a token runs: every kind of router against one written plainly, ties, NaN, groups; and the order of the pairs. */
#include "src/base/mem.h"
#include "src/ops/pairs.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_EXPERTS = 40, MAX_TOKENS = 50, MAX_USED = 8 };

typedef struct router {
    qn_exec x;
    qn_kernels k;
    qn_plan plan;
    qn_stage stage;
    qn_batch batch;
    qn_pool *pool;
    void *memory;
    size_t n_bytes;
    const qn_pairs *seen[4];
} router;

static void open_router(router *r, const qn_routing *routing, int32_t n_tokens, int32_t n_threads)
{
    *r = (router){
        .plan = { .pair_width = 32, .row_width = 32, .max_experts = routing->n_expert, .max_used = routing->n_used, .max_heads = 1 },
        .stage.u.experts.experts.routing = *routing,
        .batch.n = n_tokens,
    };
    r->plan.width[QN_REG_R] = routing->n_expert;
    assert_int_equal(qn_kernels_init(&r->k, NULL, true, NULL), QN_OK);
    assert_int_equal(qn_pool_open(&r->pool, n_threads, NULL), QN_OK);
    r->n_bytes = qn_exec_bytes(&r->plan, n_tokens, 16, n_threads);
    assert_int_equal(qn_pages_new(&r->memory, r->n_bytes, "a test", NULL), QN_OK);
    qn_exec_place(&r->x, &r->plan, n_tokens, 16, n_threads, r->memory);
    r->x.k = &r->k;
    r->x.batch = &r->batch;
    r->x.pool = r->pool;
}

static void close_router(router *r)
{
    qn_pool_close(&r->pool);
    qn_pages_free(&r->memory, r->n_bytes);
}

static void run(void *arg, int32_t i_thread, int32_t n_threads)
{
    router *r = arg;
    r->seen[i_thread] = qn_pairs_choose(&r->x, &r->stage, i_thread, n_threads);
}

/* The plain way: sort all experts, then weigh. */
static const double *sort_by;
static int by_score(const void *a, const void *b)
{
    const int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
    return sort_by[i] != sort_by[j] ? (sort_by[i] > sort_by[j] ? -1 : 1) : (i > j) - (i < j);
}

static void expect(const qn_routing *r, const float *raw, double *weight)
{
    double logits[MAX_EXPERTS];
    for (int e = 0; e < r->n_expert; e++) logits[e] = (double)raw[e] * (r->logit_scale != 0 ? (double)r->logit_scale : 1);
    double p[MAX_EXPERTS], score[MAX_EXPERTS], sum = 0, group[MAX_EXPERTS];
    int32_t order[MAX_EXPERTS], groups[MAX_EXPERTS];
    for (int e = 0; e < r->n_expert; e++) sum += exp(logits[e]);
    for (int e = 0; e < r->n_expert; e++) {
        p[e] = r->gate == QN_GATE_SOFTMAX ? exp(logits[e]) / sum : r->gate == QN_GATE_SIGMOID ? 1 / (1 + exp(-logits[e])) : logits[e];
        score[e] = p[e] + (r->bias ? r->bias[e] : 0);
        if (isnan(score[e])) score[e] = -INFINITY;
        order[e] = e;
        weight[e] = 0;
    }
    if (r->n_groups > 1) {
        const int32_t n = r->n_expert / r->n_groups;
        for (int g = 0; g < r->n_groups; g++) {
            sort_by = score;
            qsort(order + g * n, (size_t)n, sizeof *order, by_score);
            group[g] = score[order[g * n]] + (n > 1 ? score[order[g * n + 1]] : 0);
            groups[g] = g;
        }
        sort_by = group;
        qsort(groups, (size_t)r->n_groups, sizeof *groups, by_score);
        for (int g = r->n_groups_used; g < r->n_groups; g++)
            for (int e = groups[g] * n; e < (groups[g] + 1) * n; e++) score[e] = -1e30;
    }
    sort_by = score;
    qsort(order, (size_t)r->n_expert, sizeof *order, by_score);
    sum = 0;
    for (int i = 0; i < r->n_used; i++) {
        weight[order[i]] = r->gate == QN_GATE_SOFTMAX_CHOSEN ? exp(p[order[i]]) : p[order[i]];
        sum += weight[order[i]];
    }
    for (int e = 0; e < r->n_expert; e++) weight[e] = weight[e] / (r->normalised || r->gate == QN_GATE_SOFTMAX_CHOSEN ? sum : 1) * (double)r->scale;
    for (int e = 0; e < r->n_expert && r->expert_scale; e++) weight[e] *= (double)r->expert_scale[e];
}

static void check_pairs(const router *r, const qn_pairs *p)
{
    const qn_routing *c = &r->stage.u.experts.experts.routing;
    assert_int_equal(p->begin[0], 0);
    assert_int_equal(p->begin[c->n_expert], r->batch.n * c->n_used);
    for (int32_t t = 0; t < r->batch.n; t++) {
        double want[MAX_EXPERTS], got[MAX_EXPERTS] = { 0 };
        int n = 0;
        expect(c, qn_exec_row(&r->x, QN_REG_R, t), want);
        for (int32_t e = 0; e < c->n_expert; e++)
            for (int32_t i = p->begin[e]; i < p->begin[e + 1]; i++) {
                assert_true(i == p->begin[e] || p->token[i] > p->token[i - 1]);
                if (p->token[i] != t) continue;
                got[e] = (double)p->weight[i];
                n++;
            }
        assert_int_equal(n, c->n_used);
        for (int32_t e = 0; e < c->n_expert; e++)
            if (!(fabs(got[e] - want[e]) <= 1e-5 * fabs(want[e]))) fail_msg("token %d, expert %d: %g, expected %g", t, e, got[e], want[e]);
    }
}

static void fill(router *r, uint32_t seed, int ties)
{
    for (int32_t t = 0; t < r->batch.n; t++)
        for (int32_t e = 0; e < r->stage.u.experts.experts.routing.n_expert; e++) {
            seed = seed * 1664525u + 1013904223u;
            const float x = (float)(seed >> 8) * 0x1p-22f - 2;
            qn_exec_row(&r->x, QN_REG_R, t)[e] = ties ? roundf(x) : x;
        }
}

static void every_router(void **state)
{
    (void)state;
    static float bias[MAX_EXPERTS], factors[MAX_EXPERTS];
    for (int i = 0; i < MAX_EXPERTS; i++) {
        bias[i] = (float)((i * 37) % 11) * 0.05f;
        factors[i] = 0.5f + (float)((i * 29) % 7) * 0.2f;
    }
    const qn_routing routings[] = {
        { 8, 2, 0, 0, QN_GATE_SOFTMAX, true, 1, NULL, NULL, NULL, 0 },
        { 8, 8, 1, 1, QN_GATE_SOFTMAX, false, 1, NULL, NULL, NULL, 0 },
        { 40, 6, 0, 0, QN_GATE_SOFTMAX, false, 2.5f, NULL, NULL, NULL, 0 },
        { 40, 8, 0, 0, QN_GATE_SIGMOID, true, 2.5f, NULL, bias, NULL, 0 },
        { 40, 8, 8, 3, QN_GATE_SIGMOID, true, 1, NULL, bias, NULL, 0 },
        { 40, 1, 20, 1, QN_GATE_SOFTMAX, false, 1, NULL, NULL, NULL, 0 },
        { 32, 4, 0, 0, QN_GATE_SOFTMAX_CHOSEN, false, 1, NULL, NULL, NULL, 0 },
        { 1, 1, 0, 0, QN_GATE_SOFTMAX, true, 1, NULL, NULL, NULL, 0 },
        { 40, 6, 0, 0, QN_GATE_SOFTMAX, true, 1, NULL, NULL, factors, 0.25f },
    };
    static const int32_t tokens[] = { 1, 4, 5, MAX_TOKENS };
    for (size_t i = 0; i < sizeof routings / sizeof *routings; i++)
        for (size_t n = 0; n < sizeof tokens / sizeof *tokens; n++)
            for (int ties = 0; ties < (routings[i].bias ? 1 : 2); ties++) { /* with a bias, what ties is a matter of rounding */
                router r;
                open_router(&r, &routings[i], tokens[n], 3);
                fill(&r, (uint32_t)(i * 100 + n), ties);
                qn_pool_run(r.pool, run, &r);
                for (int t = 0; t < 3; t++) check_pairs(&r, r.seen[t]);
                close_router(&r);
            }
}

/* A router whose logits are not numbers still chooses as many experts as there must be. */
static void not_numbers(void **state)
{
    (void)state;
    const qn_routing routing = { 16, 4, 4, 2, QN_GATE_SIGMOID, true, 1, NULL, NULL, NULL, 0 };
    for (int32_t n = 3; n < 8; n += 4) {
        router r;
        open_router(&r, &routing, n, 2);
        for (int32_t t = 0; t < n; t++)
            for (int32_t e = 0; e < 16; e++) qn_exec_row(&r.x, QN_REG_R, t)[e] = e == 7 ? 1 : t % 2 ? NAN : -INFINITY;
        qn_pool_run(r.pool, run, &r);
        const qn_pairs *p = r.seen[0];
        assert_int_equal(p->begin[16], 4 * n);
        assert_int_equal(p->begin[8] - p->begin[7], n);
        for (int32_t i = 0; i < 4 * n; i++) assert_true(p->token[i] >= 0 && p->token[i] < n);
        close_router(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_router), cmocka_unit_test(not_numbers) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

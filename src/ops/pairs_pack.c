#include "src/ops/pairs.h"

#include <sched.h>

/* Of a part of a weight, for all engines of the model. What was packed before it became PACKED is there for who sees that. */
enum { RAW = 0, CLAIMED, PACKED };

/* Of an expert, for one engine. Changed by thread 0 alone, between two barriers, so that all threads read the same. */
enum { UNKNOWN = 0, READY, OURS }; /* OURS + bits: the weights of which this engine has claimed the part, and packs it */

enum { MAX_PIECES = 3 };

/* The weights of which each expert has a part. */
static int32_t weights_of(const qn_experts *e, const qn_weight *out[MAX_PIECES])
{
    int32_t n = 0;
    if (e->gate) out[n++] = e->gate;
    out[n++] = e->up;
    out[n++] = e->down;
    return n;
}

static bool is_missing(const qn_exec *x, const qn_experts_args *a, const qn_pairs *p, int32_t e)
{
    return p->begin[e + 1] > p->begin[e] && x->pairs.ready[a->first_ready + e] != READY;
}

static void claim(const qn_experts *experts, int32_t e, uint8_t *ready)
{
    const qn_weight *w[MAX_PIECES];
    const int32_t n = weights_of(experts, w);
    uint8_t ours = 0;
    for (int32_t i = 0; i < n; i++) {
        unsigned char raw = RAW;
        if (atomic_compare_exchange_strong(&w[i]->state[e], &raw, CLAIMED)) ours |= (uint8_t)(1u << i);
    }
    *ready = (uint8_t)(OURS << MAX_PIECES | ours);
}

/* Every thread packs its share of the panels of what is ours. */
static void pack(const qn_experts *experts, int32_t e, uint8_t ready, int32_t i_thread, int32_t n_threads)
{
    const qn_weight *w[MAX_PIECES];
    const int32_t n = weights_of(experts, w);
    for (int32_t i = 0; i < n; i++) {
        int64_t begin, end;
        if (!(ready >> i & 1)) continue;
        qn_split(w[i]->n_panels, i_thread, n_threads, &begin, &end);
        qn_weight_pack_panels(w[i], w[i]->map->ptr + w[i]->map_at, e * w[i]->n_panels + begin, e * w[i]->n_panels + end);
    }
}

/* Who holds a claim packs without waiting for anybody, so nobody waits for ever. */
static void publish(const qn_experts *experts, int32_t e, uint8_t *ready)
{
    const qn_weight *w[MAX_PIECES];
    const int32_t n = weights_of(experts, w);
    for (int32_t i = 0; i < n; i++) {
        if (!(*ready >> i & 1)) continue;
        qn_map_advise(w[i]->map, w[i]->map_at + qn_weight_file_at(w[i], e * w[i]->n_panels), qn_weight_part_file_bytes(w[i]), QN_MAP_DROP);
        atomic_store_explicit(&w[i]->state[e], PACKED, memory_order_release);
    }
    for (int32_t i = 0; i < n; i++)
        while (atomic_load_explicit(&w[i]->state[e], memory_order_acquire) != PACKED) sched_yield();
    *ready = READY;
}

void qn_pairs_pack(const qn_exec *x, const qn_stage *s, const qn_pairs *pairs, int32_t i_thread, int32_t n_threads)
{
    const qn_experts_args *a = &s->u.experts;
    const int32_t n = a->experts.routing.n_expert;
    int32_t first = 0;
    while (first < n && !is_missing(x, a, pairs, first)) first++;
    if (first == n) return;
    uint8_t *ready = x->pairs.ready + a->first_ready;
    qn_pool_barrier(x->pool, i_thread);
    for (int32_t e = first; e < n && i_thread == 0; e++)
        if (is_missing(x, a, pairs, e)) claim(&a->experts, e, &ready[e]);
    qn_pool_barrier(x->pool, i_thread);
    for (int32_t e = first; e < n; e++)
        if (is_missing(x, a, pairs, e)) pack(&a->experts, e, ready[e], i_thread, n_threads);
    qn_pool_barrier(x->pool, i_thread);
    for (int32_t e = first; e < n && i_thread == 0; e++)
        if (is_missing(x, a, pairs, e)) publish(&a->experts, e, &ready[e]);
    qn_pool_barrier(x->pool, i_thread);
}

#include "src/ops/exec.h"

#include "src/ops/attn_join.h"

/* Hands out 64-byte aligned pieces; with memory NULL it only adds up. */
typedef struct placer {
    uint8_t *memory;
    size_t at;
} placer;

static void *place(placer *p, size_t n, size_t size)
{
    void *here = p->memory ? p->memory + p->at : NULL;
    p->at += (n * size + 63) & ~(size_t)63;
    return here;
}

static int64_t round16(int64_t n)
{
    return (n + 15) & ~(int64_t)15;
}

/* Rows lie an odd number of cache lines apart. At a multiple of 4096 bytes the lines that a product reads of 14 rows at a time would all fall
 * into one set of the L1 cache, which has 8 ways: 60 instead of 94 GMAC/s. Line: elements in 64 bytes. */
static int64_t row_stride(int64_t n, int64_t line)
{
    return (n + line - 1) / line * line | line;
}

static void place_rows(placer *p, qn_rows *r, size_t n_rows, const qn_plan *plan)
{
    const int64_t stride = row_stride(plan->row_width, QN_ACT_BLOCK);
    const size_t n_blocks = n_rows * (size_t)(stride / QN_ACT_BLOCK);
    r->stride = stride;
    r->x_stride = row_stride(plan->norm_width, 16);
    r->x = place(p, n_rows * (size_t)r->x_stride, sizeof *r->x);
    r->q = place(p, n_rows * (size_t)stride, sizeof *r->q);
    r->q8 = (int8_t *)r->q;
    r->planes = place(p, n_blocks, QN_SPLIT_MAX);
    r->d = place(p, n_blocks, sizeof *r->d);
    r->s = place(p, n_blocks, sizeof *r->s);
}

static int64_t scratch_floats(const qn_plan *plan)
{
    const int64_t tile = 3 * (int64_t)QN_ATTN_ROWS * plan->max_head_dim; /* queries, sums and a part's sums of an attention tile */
    const int64_t attention = tile + qn_attn_scratch(plan->max_head_dim, plan->max_head_dim);
    const int64_t most = attention > QN_MATMUL_SCRATCH ? attention : QN_MATMUL_SCRATCH;
    return round16(most > plan->row_width ? most : plan->row_width);
}

static void place_all(qn_exec *x, const qn_plan *plan, int32_t n_chunk, int32_t n_ctx, int32_t n_threads, placer *p)
{
    const size_t chunk = (size_t)n_chunk;
    for (int r = 0; r < QN_REG_COUNT; r++) {
        x->stride[r] = row_stride(plan->width[r], 16);
        x->reg[r] = place(p, chunk * (size_t)x->stride[r], sizeof(float));
    }
    place_rows(p, &x->shared, chunk, plan);
    x->own = place(p, (size_t)n_threads, sizeof *x->own);
    for (int32_t i = 0; i < n_threads; i++) {
        qn_rows own;
        place_rows(p, &own, QN_OWN_ROWS, plan);
        if (x->own) x->own[i] = own;
    }
    for (int32_t i = 0; i < plan->n_ropes; i++) x->angle[i] = place(p, chunk * (size_t)plan->rope[i].n_rot, sizeof(float));
    x->scratch_stride = scratch_floats(plan);
    x->scratch = place(p, (size_t)n_threads * (size_t)x->scratch_stride, sizeof(float));
    x->tile_stride = 2 * qn_tile_floats(n_chunk);
    x->tile = place(p, (size_t)n_threads * (size_t)x->tile_stride, sizeof(float));
    x->n_parts = n_ctx / QN_ATTN_PART + 1;
    const size_t n_parts = QN_OWN_ROWS * (size_t)x->n_parts;
    x->part_o = place(p, n_parts * (size_t)x->stride[QN_REG_O], sizeof(float));
    x->part_m = place(p, n_parts * (size_t)plan->max_heads, sizeof(float));
    x->part_l = place(p, n_parts * (size_t)plan->max_heads, sizeof(float));
    x->n_groups = (int32_t)((plan->n_logits + QN_RANK_GROUP - 1) / QN_RANK_GROUP);
    x->extremes = place(p, QN_OWN_ROWS * (size_t)x->n_groups, sizeof *x->extremes);
    x->n_blocks = n_ctx / QN_KV_POSITIONS + 1;
    x->blocks = place(p, (size_t)n_threads * 2 * (size_t)x->n_blocks, sizeof *x->blocks);
    x->plan = plan;
    x->n_chunk = n_chunk;
    x->n_ctx = n_ctx;
}

size_t qn_exec_bytes(const qn_plan *plan, int32_t n_chunk, int32_t n_ctx, int32_t n_threads)
{
    qn_exec x = { 0 };
    placer p = { 0 };
    place_all(&x, plan, n_chunk, n_ctx, n_threads, &p);
    return p.at;
}

void qn_exec_place(qn_exec *x, const qn_plan *plan, int32_t n_chunk, int32_t n_ctx, int32_t n_threads, void *memory)
{
    placer p = { .memory = memory };
    place_all(x, plan, n_chunk, n_ctx, n_threads, &p);
}

typedef struct step {
    const qn_exec *x;
    size_t begin, end; /* stages */
    /* Thread 0 looks at the cancel flag before a barrier and all read its answer after it. Two slots by turns: a slot is written again only
     * when every thread has passed the next barrier, so all have read it. */
    bool stop[2];
} step;

/* @return the time now, when the next stage begins */
static double note_time(const qn_exec *x, const qn_stage *s, qn_stage_time *t, double began)
{
    const double now = qn_now();
    t->n_runs++;
    t->seconds += now - began;
    if (s->cost) s->cost(x, s, &t->cost);
    return now;
}

static void run_stages(void *arg, int32_t i_thread, int32_t n_threads)
{
    step *st = arg;
    const qn_plan *plan = st->x->plan;
    const atomic_bool *cancel = st->x->batch->cancel;
    double began = i_thread == 0 && st->x->time ? qn_now() : 0;
    for (size_t i = st->begin; i < st->end; i++) {
        const qn_stage *s = &plan->stage[i];
        s->run(st->x, s, i_thread, n_threads);
        if (s->joined) continue;
        if (i_thread == 0) st->stop[i & 1] = cancel && atomic_load_explicit(cancel, memory_order_relaxed);
        qn_pool_barrier(st->x->pool, i_thread);
        if (i_thread == 0 && st->x->time) began = note_time(st->x, s, &st->x->time[i], began);
        if (st->stop[i & 1]) return;
    }
}

bool qn_exec_run(qn_exec *x, qn_pool *pool)
{
    return qn_exec_run_part(x, pool, 0, x->plan->n_stages);
}

bool qn_exec_run_part(qn_exec *x, qn_pool *pool, size_t begin, size_t end)
{
    step st = { .x = x, .begin = begin, .end = end };
    x->pool = pool;
    qn_pool_run(pool, run_stages, &st);
    return !st.stop[0] && !st.stop[1];
}

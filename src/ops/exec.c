#include "src/ops/exec.h"

#include "src/ops/attn_join.h"
#include "src/ops/pairs.h"

static int64_t scratch_floats(const qn_plan *plan)
{
    const int64_t tile = 3 * (int64_t)QN_ATTN_ROWS * plan->max_head_dim; /* queries, sums and a part's sums of an attention tile */
    const int64_t attention = tile + qn_attn_scratch(plan->max_head_dim, plan->max_head_dim);
    const int64_t most = attention > QN_MATMUL_SCRATCH ? attention : QN_MATMUL_SCRATCH;
    const int64_t width = plan->row_width > plan->scratch_width ? plan->row_width : plan->scratch_width, floats = most > width ? most : width;
    return (floats + 15) & ~(int64_t)15;
}

/* Rows for each thread. */
static qn_rows *place_own(qn_placer *p, int32_t n_threads, size_t n_rows, int64_t width, int64_t norm_width)
{
    qn_rows *rows = qn_place(p, (size_t)n_threads, sizeof *rows);
    for (int32_t i = 0; i < n_threads; i++) {
        qn_rows own;
        qn_rows_place(p, &own, n_rows, width, norm_width);
        if (rows) rows[i] = own;
    }
    return rows;
}

static void place_all(qn_exec *x, const qn_plan *plan, int32_t n_chunk, int32_t n_ctx, int32_t n_threads, qn_placer *p)
{
    const size_t chunk = (size_t)n_chunk;
    for (int r = 0; r < QN_REG_COUNT; r++) {
        x->stride[r] = qn_row_stride(plan->width[r], 16);
        x->reg[r] = qn_place(p, chunk * (size_t)x->stride[r], sizeof(float));
    }
    qn_rows_place(p, &x->shared, chunk, plan->row_width, plan->norm_width);
    x->own = place_own(p, n_threads, QN_OWN_ROWS, plan->row_width, plan->norm_width);
    if (plan->gather_width) x->gathered = place_own(p, n_threads, QN_GATHERED, plan->gather_width, plan->gather_width);
    if (plan->pair_width) qn_pairs_place(p, x, plan, n_chunk, n_threads);
    for (int32_t i = 0; i < plan->n_ropes; i++) x->angle[i] = qn_place(p, chunk * (size_t)plan->rope[i].n_rot, sizeof(float));
    x->scratch_stride = scratch_floats(plan);
    x->scratch = qn_place(p, (size_t)n_threads * (size_t)x->scratch_stride, sizeof(float));
    x->tile_stride = 2 * qn_tile_floats(n_chunk);
    x->tile = qn_place(p, (size_t)n_threads * (size_t)x->tile_stride, sizeof(float));
    x->n_parts = n_ctx / QN_ATTN_PART + 1;
    const size_t n_parts = QN_OWN_ROWS * (size_t)x->n_parts;
    x->part_o = qn_place(p, n_parts * (size_t)x->stride[QN_REG_O], sizeof(float));
    x->part_m = qn_place(p, n_parts * (size_t)plan->max_heads, sizeof(float));
    x->part_l = qn_place(p, n_parts * (size_t)plan->max_heads, sizeof(float));
    x->n_groups = (int32_t)((plan->n_logits + QN_RANK_GROUP - 1) / QN_RANK_GROUP);
    x->extremes = qn_place(p, QN_OWN_ROWS * (size_t)x->n_groups, sizeof *x->extremes);
    x->n_blocks = n_ctx / QN_KV_POSITIONS + 1;
    x->blocks = qn_place(p, (size_t)n_threads * 2 * (size_t)x->n_blocks, sizeof *x->blocks);
    x->plan = plan;
    x->n_chunk = n_chunk;
    x->n_ctx = n_ctx;
}

size_t qn_exec_bytes(const qn_plan *plan, int32_t n_chunk, int32_t n_ctx, int32_t n_threads)
{
    qn_exec x = { 0 };
    qn_placer p = { 0 };
    place_all(&x, plan, n_chunk, n_ctx, n_threads, &p);
    return p.at;
}

void qn_exec_place(qn_exec *x, const qn_plan *plan, int32_t n_chunk, int32_t n_ctx, int32_t n_threads, void *memory)
{
    qn_placer p = { .memory = memory };
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
    int slot = 0;
    for (size_t i = st->begin; i < st->end; i++) {
        const qn_stage *s = &plan->stage[i];
        s->run(st->x, s, i_thread, n_threads);
        if (s->joined) {
            if (i_thread == 0 && st->x->time && s->cost) s->cost(st->x, s, &st->x->time[i].cost); /* its time counts with the next one */
            continue;
        }
        slot ^= 1;
        if (i_thread == 0) st->stop[slot] = cancel && atomic_load_explicit(cancel, memory_order_relaxed);
        qn_pool_barrier(st->x->pool, i_thread);
        if (i_thread == 0 && st->x->time) began = note_time(st->x, s, &st->x->time[i], began);
        if (st->stop[slot]) return;
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

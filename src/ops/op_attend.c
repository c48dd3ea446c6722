#include "src/ops/alibi.h"
#include "src/ops/attn_join.h"
#include "src/ops/exec.h"

#include <math.h>
#include <string.h>

/* A tile: query heads [head, head + n_heads) of one KV head, for rows [i, i + n_rows) of one timeline. Row r of a tile is head r
 * mod n_heads. */
typedef struct tile {
    const qn_exec *x;
    const qn_stage *stage;
    int32_t i_thread;
    int32_t i, n_rows;
    int32_t head_kv, head, n_heads;
} tile;

/* (m, l, o) of the rows of a tile, dim_v floats to a row of o. */
typedef struct sums {
    float *m, *l, *o;
} sums;

static int32_t first_seen(const qn_heads *h, int32_t position)
{
    if (h->window && h->around) return position > h->window / 2 ? position - h->window / 2 : 0;
    if (!h->window || position < h->window) return 0;
    return h->chunked ? position / h->window * h->window : position - h->window + 1;
}

/* The last position that row i of the stage sees: its own, or that of the last token of its text, all of which is in this step, or of its window. */
static int32_t last_seen(const qn_exec *x, const qn_stage *s, int32_t i)
{
    const qn_batch *b = x->batch;
    const qn_heads *h = &s->u.heads;
    const int32_t t = qn_exec_token(x, s, i), p = b->position[t], last = b->last[t];
    if (!h->sees_all) return p;
    return h->window && h->around && last - p > h->window / 2 ? p + h->window / 2 : last;
}

static int32_t position_of(const tile *w, int32_t i)
{
    return w->x->batch->position[qn_exec_token(w->x, w->stage, w->i + i)];
}

/* The tile's queries side by side: they lie apart where a token has more heads than the tile. */
static float *gather_queries(const tile *w)
{
    const qn_heads *h = &w->stage->u.heads;
    float *q = qn_exec_scratch(w->x, w->i_thread);
    const size_t n = (size_t)w->n_heads * (size_t)h->head_dim;
    for (int32_t i = 0; i < w->n_rows; i++)
        memcpy(q + (size_t)i * n, qn_exec_row(w->x, QN_REG_Q, w->i + i) + (int64_t)w->head * h->head_dim, n * sizeof *q);
    return q;
}

/* Rows of the tile that see something of positions [256 part, 256 part + 256), and what they see. Positions ascend with the rows,
 * so these rows are neighbours. @return how many, from row *begin on */
static int32_t rows_of_part(const tile *w, int32_t part, int32_t *begin, int32_t *first, int32_t *last)
{
    const int32_t from = part * QN_ATTN_PART, to = from + QN_ATTN_PART - 1;
    int32_t n = 0;
    for (int32_t i = 0; i < w->n_rows; i++) {
        const int32_t p = last_seen(w->x, w->stage, w->i + i), p0 = first_seen(&w->stage->u.heads, position_of(w, i));
        if (p < from || p0 > to) continue;
        if (n == 0) *begin = i * w->n_heads;
        for (int32_t j = 0; j < w->n_heads; j++, n++) {
            first[n] = p0 > from ? p0 : from;
            last[n] = p < to ? p : to;
        }
    }
    return n;
}

/* Slopes of n rows of the tile from row `begin` on, and the positions they are from. */
static void slopes_of_rows(const tile *w, int32_t begin, int32_t n, float *slope, int32_t *at)
{
    const qn_heads *h = &w->stage->u.heads;
    float of_head[QN_ATTN_ROWS];
    for (int32_t j = 0; j < w->n_heads; j++) of_head[j] = qn_alibi_slope(h->max_bias, h->n_head, w->head + j);
    for (int32_t r = 0; r < n; r++) {
        slope[r] = of_head[(begin + r) % w->n_heads];
        at[r] = position_of(w, (begin + r) / w->n_heads);
    }
}

/* One part of the positions, for those rows of the tile that see it: into out from row *begin on. @return rows */
static int32_t attend_part(const tile *w, const float *q, int32_t part, const sums *out, int32_t *begin)
{
    const qn_exec *x = w->x;
    const qn_heads *h = &w->stage->u.heads;
    const qn_kv *kv = x->batch->kv[qn_exec_token(x, w->stage, w->i)];
    const void **k = x->blocks + (int64_t)w->i_thread * 2 * x->n_blocks, **v = k + x->n_blocks;
    int32_t first[QN_ATTN_ROWS], last[QN_ATTN_ROWS], at[QN_ATTN_ROWS];
    float slope[QN_ATTN_ROWS];
    const int32_t n = rows_of_part(w, part, begin, first, last);
    if (n == 0) return 0;
    if (h->max_bias > 0) slopes_of_rows(w, *begin, n, slope, at);
    for (int32_t b = first[0] / QN_KV_POSITIONS; b <= last[n - 1] / QN_KV_POSITIONS; b++) {
        k[b] = qn_kv_k(kv, h->i_kv, w->head_kv, b * QN_KV_POSITIONS);
        v[b] = qn_kv_v(kv, h->i_kv, w->head_kv, b * QN_KV_POSITIONS);
    }
    const qn_attn_args args = {
        .q = q + (int64_t)*begin * h->head_dim,
        .q_stride = h->head_dim,
        .n_q = n,
        .head_dim = h->head_dim,
        .head_dim_v = h->head_dim_v,
        .first = first,
        .last = last,
        .k_row = x->kv_k,
        .v_row = x->kv_v,
        .k_blocks = k,
        .v_blocks = v,
        .softcap = h->softcap,
        .slope = h->max_bias > 0 ? slope : NULL,
        .at = at,
        .o = out->o + (int64_t)*begin * h->head_dim_v,
        .o_stride = h->head_dim_v,
        .m = out->m + *begin,
        .l = out->l + *begin,
        .scratch = qn_exec_scratch(x, w->i_thread) + 3 * (int64_t)QN_ATTN_ROWS * x->plan->max_head_dim,
    };
    x->k->attention(&args);
    return n;
}

/* A row's sums and its sink become its result. */
static void finish(const qn_exec *x, const qn_heads *h, int32_t i, int32_t head, float m, float l, float *o)
{
    if (h->sinks) qn_attn_join(x->k, &m, &l, o, h->sinks[head], 1, NULL, h->head_dim_v);
    qn_attn_finish(l, o, h->head_dim_v, qn_exec_row(x, QN_REG_O, i) + (int64_t)head * h->head_dim_v);
}

/* A tile from its first part to its last. */
static void attend_tile(const tile *w)
{
    const qn_heads *h = &w->stage->u.heads;
    const int32_t n = w->n_rows * w->n_heads, dim = h->head_dim_v;
    float m_all[QN_ATTN_ROWS], l_all[QN_ATTN_ROWS], m[QN_ATTN_ROWS], l[QN_ATTN_ROWS];
    float *o_all = qn_exec_scratch(w->x, w->i_thread) + (int64_t)QN_ATTN_ROWS * w->x->plan->max_head_dim;
    const sums part = { m, l, o_all + (int64_t)QN_ATTN_ROWS * w->x->plan->max_head_dim };
    const float *q = gather_queries(w);
    for (int32_t r = 0; r < n; r++) {
        m_all[r] = -INFINITY;
        l_all[r] = 0;
    }
    memset(o_all, 0, (size_t)n * (size_t)dim * sizeof *o_all);
    for (int32_t p = first_seen(h, position_of(w, 0)) / QN_ATTN_PART; p <= last_seen(w->x, w->stage, w->i + w->n_rows - 1) / QN_ATTN_PART; p++) {
        int32_t begin = 0;
        const int32_t end = attend_part(w, q, p, &part, &begin) + begin;
        for (int32_t r = begin; r < end; r++)
            qn_attn_join(w->x->k, &m_all[r], &l_all[r], o_all + (int64_t)r * dim, m[r], l[r], part.o + (int64_t)r * dim, dim);
    }
    for (int32_t r = 0; r < n; r++)
        finish(w->x, h, w->i + r / w->n_heads, w->head + r % w->n_heads, m_all[r], l_all[r], o_all + (int64_t)r * dim);
}

/* Rows from i on that belong to one timeline, at most `most`. */
static int32_t run_length(const qn_exec *x, const qn_stage *s, int32_t i, int32_t most)
{
    const qn_batch *b = x->batch;
    const qn_kv *kv = b->kv[qn_exec_token(x, s, i)];
    int32_t n = 1;
    while (n < most && i + n < qn_exec_n_rows(x, s) && b->kv[qn_exec_token(x, s, i + n)] == kv) n++;
    return n;
}

/* Many rows: tiles go to the threads in turn. */
static void attend_tiles(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_heads *h = &s->u.heads;
    const int32_t group = h->n_head / h->n_head_kv, n = qn_exec_n_rows(x, s),
                  n_heads = group < QN_ATTN_ROWS ? group : QN_ATTN_ROWS;
    int64_t i_tile = 0;
    for (int32_t i = 0, n_rows; i < n; i += n_rows) {
        n_rows = run_length(x, s, i, QN_ATTN_ROWS / n_heads);
        for (int32_t head_kv = 0; head_kv < h->n_head_kv; head_kv++) {
            for (int32_t j = 0; j < group; j += n_heads) {
                if (i_tile++ % n_threads != i_thread) continue;
                attend_tile(&(tile){ x, s, i_thread, i, n_rows, head_kv, head_kv * group + j,
                                     group - j < n_heads ? group - j : n_heads });
            }
        }
    }
}

/* Where the sums of a part of one row and head are. */
static sums part_at(const qn_exec *x, const qn_heads *h, int32_t i, int32_t part, int32_t head)
{
    const int64_t at = (int64_t)i * x->n_parts + part;
    return (sums){ x->part_m + at * x->plan->max_heads + head, x->part_l + at * x->plan->max_heads + head,
                   x->part_o + at * x->stride[QN_REG_O] + (int64_t)head * h->head_dim_v };
}

/* Row i's first part and the number of its parts. */
static int32_t parts_of(const qn_exec *x, const qn_stage *s, int32_t i, int32_t *n)
{
    const int32_t p = x->batch->position[qn_exec_token(x, s, i)], first = first_seen(&s->u.heads, p) / QN_ATTN_PART;
    *n = last_seen(x, s, i) / QN_ATTN_PART - first + 1;
    return first;
}

static void join_parts(const qn_exec *x, const qn_stage *s, int32_t i, int32_t head, int32_t i_thread)
{
    const qn_heads *h = &s->u.heads;
    float m = -INFINITY, l = 0, *o = qn_exec_scratch(x, i_thread);
    int32_t n_parts;
    (void)parts_of(x, s, i, &n_parts);
    memset(o, 0, (size_t)h->head_dim_v * sizeof *o);
    for (int32_t p = 0; p < n_parts; p++) {
        const sums part = part_at(x, h, i, p, head);
        qn_attn_join(x->k, &m, &l, o, *part.m, *part.l, part.o, h->head_dim_v);
    }
    finish(x, h, i, head, m, l, o);
}

/* Few rows: their parts go to the threads in turn, and after a barrier each row and head is joined by one thread. A group of
 * heads, which reads its keys and values together, is cut where there would be too few tasks to share out evenly. */
static void attend_split(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_heads *h = &s->u.heads;
    const int32_t group = h->n_head / h->n_head_kv, n_rows = qn_exec_n_rows(x, s);
    int32_t n_tasks = 0, n_parts;
    for (int32_t i = 0; i < n_rows; i++) {
        (void)parts_of(x, s, i, &n_parts);
        n_tasks += n_parts * h->n_head_kv;
    }
    const int32_t n_heads = n_tasks < 4 * n_threads && n_tasks % n_threads != 0 ? 1 : group < QN_ATTN_ROWS ? group : QN_ATTN_ROWS;
    const int32_t n_cuts = (group + n_heads - 1) / n_heads;
    int64_t i_task = 0;
    for (int32_t i = 0; i < n_rows; i++) {
        const int32_t part = parts_of(x, s, i, &n_parts);
        for (int32_t t = 0; t < h->n_head_kv * n_cuts * n_parts; t++) {
            if (i_task++ % n_threads != i_thread) continue;
            const int32_t p = t % n_parts, cut = t / n_parts % n_cuts, head_kv = t / n_parts / n_cuts, j = cut * n_heads;
            const tile w = { x, s, i_thread, i, 1, head_kv, head_kv * group + j, group - j < n_heads ? group - j : n_heads };
            const sums out = part_at(x, h, i, p, w.head);
            int32_t begin = 0;
            (void)attend_part(&w, gather_queries(&w), part + p, &out, &begin);
        }
    }
    qn_pool_barrier(x->pool, i_thread);
    int64_t first, end;
    qn_split((int64_t)n_rows * h->n_head, i_thread, n_threads, &first, &end);
    for (int64_t at = first; at < end; at++) join_parts(x, s, (int32_t)(at / h->n_head), (int32_t)(at % h->n_head), i_thread);
}

void qn_op_attend(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    if (qn_exec_n_rows(x, s) > QN_OWN_ROWS)
        attend_tiles(x, s, i_thread, n_threads);
    else
        attend_split(x, s, i_thread, n_threads);
}

/* A timeline's part of the cache is read once, however many of its tokens look at it. */
void qn_cost_attend(const qn_exec *x, const qn_stage *s, qn_cost *c)
{
    const qn_heads *h = &s->u.heads;
    const double dims = h->head_dim + h->head_dim_v;
    const size_t block_bytes = qn_kv_block_bytes(x->kv_k, h->head_dim) + qn_kv_block_bytes(x->kv_v, h->head_dim_v);
    const int32_t n_all = qn_exec_n_rows(x, s);
    for (int32_t i = 0, n; i < n_all; i += n) {
        n = run_length(x, s, i, n_all);
        for (int32_t j = i, seen = -1; j < i + n; j++) {
            const int32_t p = last_seen(x, s, j), first = first_seen(h, x->batch->position[qn_exec_token(x, s, j)]), n_seen = p - first + 1;
            c->mul_adds += dims * h->n_head * n_seen;
            c->bytes += (double)block_bytes / QN_KV_POSITIONS * h->n_head_kv * (p - (seen >= first ? seen : first - 1));
            seen = p;
        }
    }
}

#include "src/ops/exec.h"

#include <string.h>

static void turn(const qn_exec *x, const qn_heads *h, const qn_norm *norm, int64_t t, float *head)
{
    if (norm->kind == QN_NORM_RMS) x->k->rms_norm(head, norm->w, h->head_dim, norm->eps, head);
    else if (norm->kind == QN_NORM_LAYER) x->k->layer_norm(head, norm->w, norm->b, h->head_dim, norm->eps, head);
    if (h->i_rope < 0) return;
    const qn_rope *r = &x->plan->rope[h->i_rope];
    x->k->rope(head, x->angle[h->i_rope] + t * r->n_rot, r->n_rot, r->neox);
}

/* Queries are normed, rotated and scaled in place; keys likewise, and go with the values into the cache. One head of one token is
 * a task. */
void qn_op_store(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_heads *h = &s->u.heads;
    const int64_t n_tasks = h->n_head + h->n_head_kv;
    int64_t begin, end;
    qn_split(n_tasks * x->batch->n, i_thread, n_threads, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        const int32_t t = (int32_t)(i / n_tasks), task = (int32_t)(i % n_tasks);
        if (task < h->n_head) {
            float *q = qn_exec_row(x, QN_REG_Q, t) + (int64_t)task * h->head_dim;
            turn(x, h, &h->q_norm, t, q);
            x->k->scale(q, h->scale, h->head_dim, q);
            continue;
        }
        const int32_t head = task - h->n_head, position = x->batch->position[t], slot = position % QN_KV_POSITIONS;
        float *k = qn_exec_row(x, QN_REG_K, t) + (int64_t)head * h->head_dim;
        turn(x, h, &h->k_norm, t, k);
        x->k->store_k(k, h->head_dim, slot, qn_kv_k(x->batch->kv[t], h->i_kv, head, position));
        x->k->store_v(qn_exec_row(x, QN_REG_V, t) + (int64_t)head * h->head_dim_v, h->head_dim_v, slot,
                      qn_kv_v(x->batch->kv[t], h->i_kv, head, position));
    }
}

/* A tile: query heads [head, head + n_heads) of one KV head, for rows [i, i + n_rows) of one timeline. */
typedef struct tile {
    const qn_stage *stage;
    int32_t i, n_rows;
    int32_t head_kv, head, n_heads;
} tile;

static int32_t first_seen(const qn_heads *h, int32_t position)
{
    return h->window && position >= h->window ? position - h->window + 1 : 0;
}

static void attend(const qn_exec *x, const tile *w, int32_t i_thread)
{
    const qn_heads *h = &w->stage->u.heads;
    const qn_batch *b = x->batch;
    const qn_kv *kv = b->kv[qn_exec_token(x, w->stage, w->i)];
    const uint16_t **k = x->blocks + (int64_t)i_thread * 2 * x->n_blocks, **v = k + x->n_blocks;
    int32_t first[QN_ATTN_ROWS], last[QN_ATTN_ROWS];
    float sink[QN_ATTN_ROWS];
    float *q = qn_exec_scratch(x, i_thread), *out = q + (int64_t)QN_ATTN_ROWS * h->head_dim;
    const int32_t n_q = w->n_rows * w->n_heads;
    for (int32_t i = 0; i < w->n_rows; i++) {
        const int32_t p = b->position[qn_exec_token(x, w->stage, w->i + i)];
        memcpy(q + (int64_t)i * w->n_heads * h->head_dim, qn_exec_row(x, QN_REG_Q, w->i + i) + (int64_t)w->head * h->head_dim,
               sizeof *q * (size_t)w->n_heads * (size_t)h->head_dim);
        for (int32_t j = 0; j < w->n_heads; j++) {
            first[i * w->n_heads + j] = first_seen(h, p);
            last[i * w->n_heads + j] = p;
            sink[i * w->n_heads + j] = h->sinks ? h->sinks[w->head + j] : 0;
        }
    }
    for (int32_t block = first[0] / QN_KV_POSITIONS; block <= last[n_q - 1] / QN_KV_POSITIONS; block++) {
        k[block] = qn_kv_k(kv, h->i_kv, w->head_kv, block * QN_KV_POSITIONS);
        v[block] = qn_kv_v(kv, h->i_kv, w->head_kv, block * QN_KV_POSITIONS);
    }
    const qn_attn_args args = {
        .q = q, .q_stride = h->head_dim, .n_q = n_q, .head_dim = h->head_dim, .head_dim_v = h->head_dim_v, .first = first, .last = last,
        .k_blocks = k, .v_blocks = v, .softcap = h->softcap, .sink = h->sinks ? sink : NULL, .out = out, .out_stride = h->head_dim_v,
        .scratch = out + (int64_t)QN_ATTN_ROWS * h->head_dim_v,
    };
    x->k->attention(&args);
    for (int32_t i = 0; i < w->n_rows; i++)
        memcpy(qn_exec_row(x, QN_REG_O, w->i + i) + (int64_t)w->head * h->head_dim_v, out + (int64_t)i * w->n_heads * h->head_dim_v,
               sizeof *out * (size_t)w->n_heads * (size_t)h->head_dim_v);
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

/* Tiles go to the threads in turn. A group of heads is cut where whole groups would leave threads idle; rows are independent, so that the
 * cut does not show in the result. */
void qn_op_attend(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_heads *h = &s->u.heads;
    const int32_t group = h->n_head / h->n_head_kv, n = qn_exec_n_rows(x, s);
    const bool cut = n == 1 && h->n_head_kv % n_threads != 0;
    const int32_t n_heads = cut ? 1 : group < QN_ATTN_ROWS ? group : QN_ATTN_ROWS;
    const int32_t most = QN_ATTN_ROWS / n_heads;
    int64_t i_tile = 0;
    for (int32_t i = 0; i < n;) {
        const int32_t n_rows = run_length(x, s, i, most);
        for (int32_t head_kv = 0; head_kv < h->n_head_kv; head_kv++) {
            for (int32_t j = 0; j < group; j += n_heads) {
                if (i_tile++ % n_threads != i_thread) continue;
                const tile w = { s, i, n_rows, head_kv, head_kv * group + j, group - j < n_heads ? group - j : n_heads };
                attend(x, &w, i_thread);
            }
        }
        i += n_rows;
    }
}

/* A timeline's part of the cache is read once, however many of its tokens look at it. */
void qn_cost_attend(const qn_exec *x, const qn_stage *s, qn_cost *c)
{
    const qn_heads *h = &s->u.heads;
    const double dims = h->head_dim + h->head_dim_v;
    const int32_t n_all = qn_exec_n_rows(x, s);
    for (int32_t i = 0, n; i < n_all; i += n) {
        n = run_length(x, s, i, n_all);
        for (int32_t j = i, seen = -1; j < i + n; j++) {
            const int32_t p = x->batch->position[qn_exec_token(x, s, j)], first = first_seen(h, p), n_seen = p - first + 1;
            c->mul_adds += dims * h->n_head * n_seen;
            c->bytes += dims * (double)sizeof(uint16_t) * h->n_head_kv * (p - (seen >= first ? seen : first - 1));
            seen = p;
        }
    }
}

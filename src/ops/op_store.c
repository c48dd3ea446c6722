#include "src/ops/exec.h"

#include <string.h>

static void turn(const qn_exec *x, const qn_heads *h, const qn_norm *norm, int64_t t, int64_t i_head, float *head)
{
    qn_norm own = *norm;
    if (own.w) own.w += i_head * h->norm_stride;
    if (own.b) own.b += i_head * h->norm_stride;
    if (!h->norm_late) qn_norm_row(x, &own, head, h->head_dim, head);
    if (h->i_rope >= 0) {
        const qn_rope *r = &x->plan->rope[h->i_rope];
        x->k->rope(head, x->angle[h->i_rope] + t * r->n_rot, r->n_rot, r->neox);
    }
    if (h->norm_late) qn_norm_row(x, &own, head, h->head_dim, head);
}

static float query_scale(const qn_heads *h, int32_t position)
{
    return (float)(h->scale * qn_temper_factor(&h->temper, position));
}

/* Queries are normed, rotated and scaled in place; keys likewise, and go with the values into the cache. One head of one token is
 * a task. */
void qn_op_store(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_heads *h = &s->u.heads;
    const int64_t n_tasks = h->n_head + (h->only_reads ? 0 : h->n_head_kv);
    const qn_norm v_norm = { .kind = h->norm_v ? QN_NORM_RMS : QN_NORM_NONE, .eps = h->k_norm.eps };
    int64_t begin, end;
    qn_split(n_tasks * x->batch->n, i_thread, n_threads, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        const int32_t t = (int32_t)(i / n_tasks), task = (int32_t)(i % n_tasks);
        if (task < h->n_head) {
            float *q = qn_exec_row(x, QN_REG_Q, t) + (int64_t)task * h->head_dim;
            if (h->q_gated) memcpy(q, qn_exec_row(x, QN_REG_G, t) + (int64_t)2 * task * h->head_dim, (size_t)h->head_dim * sizeof *q);
            turn(x, h, &h->q_norm, t, task, q);
            x->k->scale(q, query_scale(h, x->batch->position[t]), h->head_dim, q);
            continue;
        }
        const int32_t head = task - h->n_head, position = x->batch->position[t], slot = position % QN_KV_POSITIONS;
        float *k = qn_exec_row(x, QN_REG_K, t) + (int64_t)head * h->head_dim;
        float *v = qn_exec_row(x, QN_REG_V, t) + (int64_t)head * h->head_dim_v;
        if (h->v_is_k) memcpy(v, k, (size_t)h->head_dim_v * sizeof *v);
        turn(x, h, &h->k_norm, t, head, k);
        qn_kv_store_k(x->kv_k, k, h->head_dim, slot, qn_kv_k(x->batch->kv[t], h->i_kv, head, position));
        qn_norm_row(x, &v_norm, v, h->head_dim_v, v);
        qn_kv_store_v(x->kv_v, v, h->head_dim_v, slot, qn_kv_v(x->batch->kv[t], h->i_kv, head, position));
    }
}

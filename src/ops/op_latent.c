#include "src/ops/exec.h"

#include <string.h>

/* The part of a head's query that carries the position: rotated, scaled, and put behind what the head asks of the latent. */
static void turn_query(const qn_exec *x, const qn_latent_args *a, int32_t t, int32_t head)
{
    const int32_t n_rot = a->heads.head_dim - a->heads.head_dim_v;
    const float *from = qn_exec_row(x, a->q, t) + (int64_t)head * (a->n_plain + n_rot) + a->n_plain;
    float *to = qn_exec_row(x, QN_REG_Q, t) + (int64_t)head * a->heads.head_dim + a->heads.head_dim_v;
    memcpy(to, from, (size_t)n_rot * sizeof *to);
    if (a->heads.i_rope >= 0) x->k->rope(to, x->angle[a->heads.i_rope] + (int64_t)t * n_rot, n_rot, x->plan->rope[a->heads.i_rope].neox);
    x->k->scale(to, a->heads.scale, n_rot, to);
}

/* The latent is key and value at once. The cache holds it twice, in the order in which attention reads keys and in that of values. */
static void store(const qn_exec *x, const qn_latent_args *a, int32_t t)
{
    const qn_heads *h = &a->heads;
    const int32_t n_rot = h->head_dim - h->head_dim_v, position = x->batch->position[t], slot = position % QN_KV_POSITIONS;
    float *latent = qn_exec_row(x, QN_REG_K, t), *turned = latent + h->head_dim_v;
    x->k->rms_norm(latent, h->k_norm.w, h->head_dim_v, h->k_norm.eps, latent);
    if (h->i_rope >= 0) x->k->rope(turned, x->angle[h->i_rope] + (int64_t)t * n_rot, n_rot, x->plan->rope[h->i_rope].neox);
    qn_kv_store_k(x->kv_k, latent, h->head_dim, slot, qn_kv_k(x->batch->kv[t], h->i_kv, 0, position));
    qn_kv_store_v(x->kv_v, latent, h->head_dim_v, slot, qn_kv_v(x->batch->kv[t], h->i_kv, 0, position));
}

void qn_op_latent(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_latent_args *a = &s->u.latent;
    const int32_t n_tasks = a->heads.n_head + 1;
    int64_t begin, end;
    qn_split((int64_t)n_tasks * x->batch->n, i_thread, n_threads, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        const int32_t t = (int32_t)(i / n_tasks), task = (int32_t)(i % n_tasks);
        if (task < a->heads.n_head) turn_query(x, a, t, task);
        else store(x, a, t);
    }
}

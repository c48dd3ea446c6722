#include "src/run/draft.h"

#include "src/base/pool.h"

#include <string.h>

/* Tokens of a part go into the batch from `at` on. @return outputs so far */
static int32_t add_part(qn_engine *e, const qn_step_part *p, int32_t position, int32_t at, int32_t n_outputs)
{
    memcpy(e->token + at, p->token, (size_t)p->n * sizeof *e->token);
    for (int32_t i = 0; i < p->n; i++) {
        e->position[at + i] = position + i;
        e->last[at + i] = position + p->n - 1;
        e->owner[at + i] = p->kv;
        e->is_other[at + i] = i >= p->n - p->n_other;
        if (p->outputs_first ? i < p->n_outputs : i >= p->n - p->n_outputs) e->output[n_outputs++] = at + i;
    }
    return n_outputs;
}

/* @param ahead  [n_parts] positions behind the timelines' own where the parts begin; NULL: none */
static bool evaluate(qn_engine *e, const qn_step_part *part, const int32_t *ahead, int32_t n_parts, float *logits, const atomic_bool *cancel)
{
    qn_batch batch = { .token = e->token, .position = e->position, .last = e->last, .kv = e->owner, .is_other = e->is_other, .output = e->output,
                       .logits = logits, .cancel = cancel };
    for (int32_t i = 0; i < n_parts; i++) {
        const int32_t position = qn_kv_position(part[i].kv) + (ahead ? ahead[i] : 0);
        batch.n_outputs = add_part(e, &part[i], position, batch.n, batch.n_outputs);
        batch.n += part[i].n;
    }
    e->exec.batch = &batch;
    const double began = e->drafter ? qn_now() : 0;
    const bool done = qn_exec_run(&e->exec, e->pool);
    e->exec.batch = NULL;
    if (e->drafter && batch.n <= e->n_logits && batch.n - batch.n_outputs <= QN_DRAFT_MAX) qn_drafter_note_step(e->drafter, batch.n, qn_now() - began);
    return done;
}

bool qn_engine_step(qn_engine *e, const qn_step_part *part, int32_t n_parts, float *logits, const atomic_bool *cancel)
{
    const bool done = evaluate(e, part, NULL, n_parts, logits, cancel);
    for (int32_t i = 0; i < n_parts; i++) {
        if (done) qn_kv_commit(part[i].kv, part[i].token, part[i].n);
        else qn_kv_abandon(part[i].kv);
    }
    return done;
}

void qn_engine_look_ahead(qn_engine *e, const qn_step_part *part, const int32_t *ahead, int32_t n_parts, float *logits)
{
    (void)evaluate(e, part, ahead, n_parts, logits, NULL);
}

qn_status qn_engine_pool_full(const qn_engine *e, qn_err *err)
{
    qn_kv_pool_info info;
    qn_kv_pool_get_info(e->kv_pool, &info);
    return qn_fail(err, QN_ERR_CTX_FULL, "the KV cache has no free block: its %d blocks hold %.0f positions, and all are in use by the open sessions",
                   info.n_blocks, e->n_timelines * e->n_ctx);
}

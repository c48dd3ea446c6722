/* Generation in a session: one stream, a step at a time on the caller's thread. */
#include "src/run/draft.h"
#include "src/run/stats.h"

/* One step, with the engine's lock held. */
static qn_status step(qn_session *session, qn_stream *s, qn_err *err)
{
    qn_engine *e = s->engine;
    qn_engine_draft(e, &s, 1);
    const qn_step_part part = qn_stream_ask(s, e->n_chunk);
    if (!qn_kv_reserve(s->kv, qn_kv_position(s->kv) + part.n)) return qn_engine_pool_full(e, err);
    if (!qn_engine_step(e, &part, 1, e->logits, &session->cancel)) return QN_ERR_CANCELLED;
    qn_stream_choose(s, e->logits, part.n_outputs <= QN_OWN_ROWS ? e->exec.extremes : NULL);
    qn_stream_settle(s);
    qn_stats_step(&e->stats, 1, part.n);
    return QN_OK;
}

static qn_status run(qn_session *session, qn_stream *s, qn_err *err)
{
    qn_engine *e = s->engine;
    pthread_mutex_lock(&e->lock);
    qn_stream_match(s);
    pthread_mutex_unlock(&e->lock);
    while (!s->ended) {
        if (atomic_load(&session->cancel)) return QN_ERR_CANCELLED;
        pthread_mutex_lock(&e->lock);
        const qn_status status = step(session, s, err);
        pthread_mutex_unlock(&e->lock);
        QN_TRY(status);
        qn_stats_tokens(&e->stats, s);
        qn_stream_deliver(s);
    }
    return QN_OK;
}

qn_status qn_session_generate(qn_session *session, const int32_t *prompt, int32_t n_prompt, qn_sampler *sampler, const qn_generate_opts *opts,
                              qn_generate_result *result, qn_err *err)
{
    qn_stream s;
    qn_status status = qn_stream_open(&s, session->engine, session->kv, sampler, prompt, n_prompt, opts, err);
    if (status == QN_OK) {
        qn_stats_asked(&session->engine->stats, 1);
        status = qn_stream_end(&s, run(session, &s, err), err);
        qn_stats_ended(&session->engine->stats, &s.r, false);
        qn_stream_close(&s);
        atomic_store(&session->cancel, false); /* a call that came after the last evaluation was meant for this answer */
    }
    if (result) *result = s.r;
    return status;
}

#include "src/run/engine.h"

#include "src/base/mem.h"

#include <stdlib.h>

qn_status qn_session_open(qn_session **out, qn_engine *engine, qn_err *err)
{
    *out = NULL;
    qn_session *s = qn_new(1, sizeof *s);
    if (!s) return qn_fail(err, QN_ERR_NOMEM, "no memory for a session");
    s->engine = engine;
    const qn_status status = qn_kv_open(&s->kv, engine->kv_pool, err);
    if (status != QN_OK) {
        free(s);
        return status;
    }
    *out = s;
    return QN_OK;
}

void qn_session_close(qn_session **session)
{
    qn_session *s = *session;
    if (!s) return;
    pthread_mutex_lock(&s->engine->lock);
    qn_kv_close(&s->kv);
    pthread_mutex_unlock(&s->engine->lock);
    free(s->note);
    free(s);
    *session = NULL;
}

/* One chunk, with the engine's lock held. `n_outputs`: how many of its last tokens want logits. */
static qn_status step(qn_session *s, const int32_t *tokens, int32_t n, int32_t n_outputs, float *logits, qn_err *err)
{
    const qn_step_part part = { .kv = s->kv, .token = tokens, .n = n, .n_outputs = n_outputs };
    if (!qn_kv_reserve(s->kv, qn_kv_position(s->kv) + n)) return qn_engine_pool_full(s->engine, err);
    return qn_engine_step(s->engine, &part, 1, logits, &s->cancel) ? QN_OK : QN_ERR_CANCELLED;
}

static qn_status check_tokens(const qn_session *s, const int32_t *tokens, int32_t n, qn_err *err)
{
    const int32_t n_vocab = s->engine->model->net.n_vocab, left = s->engine->n_ctx - qn_kv_position(s->kv);
    if (n < 1) return qn_fail(err, QN_ERR_ARG, "%d tokens to evaluate; it must be at least 1", n);
    if (n > left)
        return qn_fail(err, QN_ERR_CTX_FULL, "%d tokens do not fit: %d of %d positions of the context are left", n, left, s->engine->n_ctx);
    if (qn_net_is_encoder(&s->engine->model->net) && (left < s->engine->n_ctx || n > s->engine->n_chunk))
        return qn_fail(err, QN_ERR_ARG, "%s reads a text whole, from position 0 on and in one step of at most %d tokens", s->engine->model->arch,
                       s->engine->n_chunk);
    for (int32_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= n_vocab)
            return qn_fail(err, QN_ERR_ARG, "token %d is number %d; the vocabulary has %d", i, tokens[i], n_vocab);
    return QN_OK;
}

static qn_status eval(qn_session *s, const int32_t *tokens, int32_t n, float *logits, bool all, qn_err *err)
{
    QN_TRY(check_tokens(s, tokens, n, err));
    qn_engine *e = s->engine;
    const int64_t n_vocab = e->model->net.n_vocab;
    for (int32_t at = 0, m; at < n; at += m) {
        m = n - at < e->n_chunk ? n - at : e->n_chunk;
        const int32_t n_outputs = !logits && !e->exec.observer ? 0 : all ? m : at + m == n ? 1 : 0;
        qn_status status = QN_ERR_CANCELLED;
        if (!atomic_load(&s->cancel)) {
            pthread_mutex_lock(&e->lock);
            status = step(s, tokens + at, m, n_outputs, all && logits ? logits + at * n_vocab : logits, err);
            pthread_mutex_unlock(&e->lock);
        }
        if (status != QN_ERR_CANCELLED) {
            QN_TRY(status);
            continue;
        }
        atomic_store(&s->cancel, false);
        return qn_fail(err, QN_ERR_CANCELLED, "cancelled after %d of %d tokens", at, n);
    }
    return QN_OK;
}

qn_status qn_session_eval(qn_session *s, const int32_t *tokens, int32_t n, float *logits, qn_err *err)
{
    return eval(s, tokens, n, logits, false, err);
}

qn_status qn_session_eval_all(qn_session *s, const int32_t *tokens, int32_t n, float *logits, qn_err *err)
{
    return eval(s, tokens, n, logits, true, err);
}

qn_status qn_session_observe(qn_session *s, const int32_t *tokens, int32_t n, const qn_observer *observer, qn_err *err)
{
    s->engine->exec.observer = observer;
    const qn_status status = eval(s, tokens, n, NULL, true, err);
    s->engine->exec.observer = NULL;
    return status;
}

int32_t qn_session_position(const qn_session *s)
{
    return qn_kv_position(s->kv);
}

int32_t qn_session_rewind(qn_session *s, const int32_t *tokens, int32_t n)
{
    pthread_mutex_lock(&s->engine->lock);
    const bool is_encoder = qn_net_is_encoder(&s->engine->model->net); /* what it has of a beginning depends on the end */
    const int32_t kept = is_encoder ? qn_kv_match(s->kv, NULL, 0) : qn_kv_match(s->kv, tokens, n);
    pthread_mutex_unlock(&s->engine->lock);
    return kept;
}

qn_status qn_session_fork(qn_session *s, const qn_session *from, qn_err *err)
{
    if (s->engine != from->engine) return qn_fail(err, QN_ERR_ARG, "a session can become a copy of one of the same engine alone");
    pthread_mutex_lock(&s->engine->lock);
    qn_kv_fork(s->kv, from->kv);
    pthread_mutex_unlock(&s->engine->lock);
    return QN_OK;
}

void qn_session_cancel(qn_session *s)
{
    atomic_store(&s->cancel, true);
}

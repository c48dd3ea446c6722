#include "src/run/engine.h"

#include "src/base/mem.h"

#include <stdlib.h>
#include <string.h>

qn_status qn_session_open(qn_session **out, qn_engine *engine, qn_err *err)
{
    *out = NULL;
    qn_session *s = qn_new(1, sizeof *s);
    if (!s) return qn_fail(err, QN_ERR_NOMEM, "no memory for a session");
    const size_t chunk = (size_t)engine->n_chunk;
    s->engine = engine;
    s->token = qn_new((size_t)engine->n_ctx, sizeof *s->token);
    s->position = qn_new(chunk, sizeof *s->position);
    s->output = qn_new(chunk, sizeof *s->output);
    s->owner = qn_new(chunk, sizeof *s->owner);
    qn_status status = QN_OK;
    if (!s->token || !s->position || !s->output || !s->owner) status = qn_fail(err, QN_ERR_NOMEM, "no memory for a session");
    else status = qn_kv_open(&s->kv, engine->kv_layout, err);
    if (status != QN_OK) {
        qn_session_close(&s);
        return status;
    }
    for (size_t i = 0; i < chunk; i++) s->owner[i] = s->kv;
    *out = s;
    return QN_OK;
}

void qn_session_close(qn_session **session)
{
    qn_session *s = *session;
    if (!s) return;
    qn_kv_close(&s->kv);
    free(s->token);
    free(s->position);
    free(s->output);
    free(s->owner);
    free(s);
    *session = NULL;
}

/* Tokens [0, n) of the history remain; where a ring has lost what they need, none do. */
static void keep(qn_session *s, int32_t n)
{
    s->n = qn_kv_can_rewind(s->kv, n) ? n : 0;
    qn_kv_rewind(s->kv, s->n);
}

/* One chunk. `outputs`: how many of its last tokens want logits. */
static bool step(qn_session *s, const int32_t *tokens, int32_t n, int32_t n_outputs, float *logits)
{
    qn_engine *e = s->engine;
    for (int32_t i = 0; i < n; i++) s->position[i] = s->n + i;
    for (int32_t i = 0; i < n_outputs; i++) s->output[i] = n - n_outputs + i;
    const qn_batch batch = {
        .n = n, .token = tokens, .position = s->position, .kv = s->owner, .output = s->output, .n_outputs = n_outputs, .logits = logits,
        .cancel = &s->cancel,
    };
    e->exec.batch = &batch;
    qn_kv_begin(s->kv, s->n + n);
    const bool done = qn_exec_run(&e->exec, e->pool);
    e->exec.batch = NULL;
    if (!done) {
        keep(s, s->n);
        return false;
    }
    memcpy(s->token + s->n, tokens, (size_t)n * sizeof *tokens);
    s->n += n;
    qn_kv_commit(s->kv, s->n);
    return true;
}

static qn_status check_tokens(const qn_session *s, const int32_t *tokens, int32_t n, qn_err *err)
{
    const int32_t n_vocab = s->engine->model->net.n_vocab, left = s->engine->n_ctx - s->n;
    if (n < 1) return qn_fail(err, QN_ERR_ARG, "%d tokens to evaluate; it must be at least 1", n);
    if (n > left)
        return qn_fail(err, QN_ERR_CTX_FULL, "%d tokens do not fit: %d of %d positions of the context are left", n, left, s->engine->n_ctx);
    for (int32_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= n_vocab)
            return qn_fail(err, QN_ERR_ARG, "token %d is number %d; the vocabulary has %d", i, tokens[i], n_vocab);
    return QN_OK;
}

static qn_status eval(qn_session *s, const int32_t *tokens, int32_t n, float *logits, bool all, qn_err *err)
{
    QN_TRY(check_tokens(s, tokens, n, err));
    const int64_t n_vocab = s->engine->model->net.n_vocab;
    for (int32_t at = 0, m; at < n; at += m) {
        m = n - at < s->engine->n_chunk ? n - at : s->engine->n_chunk;
        const int32_t n_outputs = !logits && !s->engine->exec.observer ? 0 : all ? m : at + m == n ? 1 : 0;
        if (atomic_load(&s->cancel) || !step(s, tokens + at, m, n_outputs, all && logits ? logits + at * n_vocab : logits)) {
            atomic_store(&s->cancel, false);
            return qn_fail(err, QN_ERR_CANCELLED, "cancelled after %d of %d tokens", at, n);
        }
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
    return s->n;
}

int32_t qn_session_rewind(qn_session *s, const int32_t *tokens, int32_t n)
{
    int32_t same = 0;
    while (same < n && same < s->n && tokens[same] == s->token[same]) same++;
    keep(s, same);
    return s->n;
}

void qn_session_cancel(qn_session *s)
{
    atomic_store(&s->cancel, true);
}

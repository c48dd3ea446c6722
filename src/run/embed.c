/* Hidden states: what the matrix of the logits would read. */
#include "src/base/mem.h"
#include "src/run/engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct catcher {
    float *row;              /* [n][n_embd]                                                  */
    int64_t n_embd;
} catcher;

/* The head's stage ends here, without its product. */
static bool catch_rows(void *user, const qn_stage *s, const float *x, int64_t x_stride, int32_t n_rows, int32_t i_thread, int32_t n_threads)
{
    const catcher *c = user;
    if (!s->u.matmul.to_logits) return true;
    for (int32_t i = i_thread; i < n_rows; i += n_threads) memcpy(c->row + i * c->n_embd, x + i * x_stride, (size_t)c->n_embd * sizeof(float));
    return false;
}

/* One chunk, with the engine's lock held. */
static qn_status step(qn_session *s, const int32_t *tokens, int32_t n, float *row, qn_err *err)
{
    qn_engine *e = s->engine;
    catcher c = { row, e->model->net.n_embd };
    const qn_observer observer = { catch_rows, &c };
    const qn_step_part part = { s->kv, tokens, n, n };
    if (!qn_kv_reserve(s->kv, qn_kv_position(s->kv) + n)) return qn_engine_pool_full(e, err);
    e->exec.observer = &observer;
    const bool done = qn_engine_step(e, &part, 1, NULL, &s->cancel);
    e->exec.observer = NULL;
    return done ? QN_OK : qn_fail(err, QN_ERR_CANCELLED, "cancelled");
}

static qn_status hidden_rows(qn_session *s, const int32_t *tokens, int32_t n, float *row, qn_err *err)
{
    qn_engine *e = s->engine;
    qn_status status = QN_OK;
    pthread_mutex_lock(&e->lock);
    (void)qn_kv_rewind(s->kv, 0);
    pthread_mutex_unlock(&e->lock);
    for (int32_t at = 0, m; at < n && status == QN_OK; at += m) {
        m = n - at < e->n_chunk ? n - at : e->n_chunk;
        pthread_mutex_lock(&e->lock);
        status = step(s, tokens + at, m, row + (int64_t)at * e->model->net.n_embd, err);
        pthread_mutex_unlock(&e->lock);
    }
    atomic_store(&s->cancel, false);
    return status;
}

/* Sums in double, tokens ascending. */
static void pool_rows(qn_pooling pooling, const float *row, int32_t n, int32_t n_embd, float *out)
{
    const float *one = pooling == QN_POOLING_LAST ? row + (int64_t)(n - 1) * n_embd : row;
    for (int32_t k = 0; k < n_embd; k++) {
        double sum = 0;
        for (int32_t i = 0; i < n && pooling == QN_POOLING_MEAN; i++) sum += (double)row[(int64_t)i * n_embd + k];
        out[k] = pooling == QN_POOLING_MEAN ? (float)(sum / n) : one[k];
    }
}

static void to_unit_length(float *x, int32_t n)
{
    double sum = 0;
    for (int32_t k = 0; k < n; k++) sum += (double)x[k] * (double)x[k];
    const double scale = sum > 0 ? 1 / sqrt(sum) : 0;
    for (int32_t k = 0; k < n; k++) x[k] = (float)(x[k] * scale);
}

static qn_status check(const qn_session *s, const int32_t *tokens, int32_t n, qn_pooling pooling, qn_err *err)
{
    const int32_t n_vocab = s->engine->model->net.n_vocab;
    if (pooling < QN_POOLING_NONE || pooling > QN_POOLING_FIRST) return qn_fail(err, QN_ERR_ARG, "there is no pooling %d", (int)pooling);
    if (n < 1) return qn_fail(err, QN_ERR_ARG, "%d tokens to embed; it must be at least 1", n);
    if (n > s->engine->n_ctx) return qn_fail(err, QN_ERR_CTX_FULL, "the text has %d tokens and the context holds %d", n, s->engine->n_ctx);
    for (int32_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= n_vocab) return qn_fail(err, QN_ERR_ARG, "token %d is number %d; the vocabulary has %d", i, tokens[i], n_vocab);
    return QN_OK;
}

qn_status qn_session_embed(qn_session *s, const int32_t *tokens, int32_t n, qn_pooling pooling, bool unit_length, float *out, qn_err *err)
{
    QN_TRY(check(s, tokens, n, pooling, err));
    const int32_t n_embd = s->engine->model->net.n_embd;
    const bool is_pooled = pooling != QN_POOLING_NONE;
    float *row = is_pooled ? qn_new((size_t)n * (size_t)n_embd, sizeof *row) : out;
    if (!row) return qn_fail(err, QN_ERR_NOMEM, "no memory for the hidden states of %d tokens", n);
    const qn_status status = hidden_rows(s, tokens, n, row, err);
    if (status == QN_OK && is_pooled) pool_rows(pooling, row, n, n_embd, out);
    for (int32_t i = 0; status == QN_OK && unit_length && i < (is_pooled ? 1 : n); i++) to_unit_length(out + (int64_t)i * n_embd, n_embd);
    if (is_pooled) free(row);
    return status;
}

/* Embeddings: hidden states, what the matrix of the logits would read, pooled to a vector a text. Texts are evaluated side by side, each on a timeline of
 * its own; one that does not fit into a step goes on in the next, unless the model is an encoder, whose tokens must all be there at once. */
#include "src/run/classify.h"
#include "src/run/dense.h"

#include "src/base/mem.h"
#include "src/base/opts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PARTS = 128 }; /* texts in a step */

typedef struct embedder {
    qn_engine *e;
    const qn_embed_text *text;
    int32_t n_texts;
    qn_pooling pooling;      /* NONE, MEAN, LAST or FIRST                                    */
    bool is_rank, unit_length;
    float *out;              /* where the next text's result goes                            */
    int32_t i_text, n_done;  /* the first text that is not complete, and its tokens that are evaluated */
    const atomic_bool *cancel;
    qn_progress_fn progress;
    void *progress_user;
    uint64_t n_tokens, n_tokens_done;
    qn_kv *kv[MOST_PARTS];   /* [n_kv] timelines; kv[0] is that of text i_text               */
    int32_t n_kv, most_kv;
    bool keeps;              /* kv[0] is a session's, which holds its text afterwards        */
    qn_step_part part[MOST_PARTS];
    int32_t n_parts;
    float *row;              /* [n_chunk][n_embd] outputs of a step                          */
    double *sum;             /* [n_embd] over the tokens of text i_text                      */
    float *pooled;           /* [n_embd]                                                     */
} embedder;

/* The head's stage ends here, without its product. */
static bool catch_rows(void *user, const qn_stage *s, const float *x, int64_t x_stride, int32_t n_rows, int32_t i_thread, int32_t n_threads)
{
    const embedder *j = user;
    const int64_t n_embd = j->e->model->net.n_embd;
    if (!s->u.matmul.to_logits) return true;
    for (int32_t i = i_thread; i < n_rows; i += n_threads) memcpy(j->row + i * n_embd, x + i * x_stride, (size_t)n_embd * sizeof(float));
    return false;
}

/* ---- a step ---- */

/* Tokens [from, from + n) of a text, and the rows that its pooling needs of them. */
static qn_step_part part_of(const embedder *j, const qn_embed_text *t, int32_t from, int32_t n, qn_kv *kv)
{
    const bool begins = from == 0, ends = from + n == t->n;
    const int32_t n_first = t->n_first ? t->n_first : t->n, n_other = from + n - (from > n_first ? from : n_first);
    const bool one = j->pooling == QN_POOLING_FIRST ? begins : ends, all = j->pooling == QN_POOLING_NONE || j->pooling == QN_POOLING_MEAN;
    return (qn_step_part){
        .kv = kv, .token = t->tokens + from, .n = n, .n_outputs = all ? n : one, .outputs_first = j->pooling == QN_POOLING_FIRST,
        .n_other = n_other > 0 ? n_other : 0,
    };
}

/* As many texts as there is room for. @return what hindered the first of them, where there is none */
static qn_status fill_step(embedder *j, qn_err *err)
{
    const bool is_encoder = qn_net_is_encoder(&j->e->model->net);
    int32_t n = 0, from = j->n_done;
    j->n_parts = 0;
    for (int32_t i = j->i_text; i < j->n_texts && n < j->e->n_chunk && j->n_parts < j->most_kv; i++, from = 0) {
        const qn_embed_text *t = &j->text[i];
        const int32_t left = t->n - from, room = j->e->n_chunk - n, m = left < room ? left : room;
        if (is_encoder && m < left) break;
        if (j->n_parts == j->n_kv) {
            const qn_status status = qn_kv_open(&j->kv[j->n_kv], j->e->kv_pool, err);
            if (status != QN_OK) return j->n_parts ? QN_OK : status;
            j->n_kv++;
        }
        if (!qn_kv_reserve(j->kv[j->n_parts], from + m)) break;
        j->part[j->n_parts] = part_of(j, t, from, m, j->kv[j->n_parts]);
        j->n_parts++;
        n += m;
    }
    return j->n_parts ? QN_OK : qn_engine_pool_full(j->e, err);
}

static qn_status run_step(embedder *j, qn_err *err)
{
    qn_engine *e = j->e;
    const qn_observer observer = { catch_rows, j };
    QN_TRY(fill_step(j, err));
    e->exec.observer = &observer;
    const bool done = qn_engine_step(e, j->part, j->n_parts, NULL, j->cancel);
    e->exec.observer = NULL;
    return done ? QN_OK : qn_fail(err, QN_ERR_CANCELLED, "cancelled");
}

/* Timelines of texts that are complete are empty again; that of one which goes on is the first. */
static void turn_timelines(embedder *j, bool last_goes_on)
{
    const int32_t last = j->n_parts - 1;
    for (int32_t i = 0; i < j->n_parts && !j->keeps; i++)
        if (i != last || !last_goes_on) (void)qn_kv_rewind(j->kv[i], 0);
    if (!last_goes_on) return;
    qn_kv *kv = j->kv[last];
    j->kv[last] = j->kv[0];
    j->kv[0] = kv;
}

/* ---- results ---- */

static bool to_unit_length(float *x, int32_t n, bool wanted)
{
    double sum = 0;
    for (int32_t k = 0; k < n; k++) sum += (double)x[k] * (double)x[k];
    const double scale = sum > 0 ? 1 / sqrt(sum) : 0;
    for (int32_t k = 0; k < n && wanted; k++) x[k] = (float)((double)x[k] * scale);
    return isfinite(sum);
}

/* The vector, or the scores, of text i_text. */
static qn_status finish_text(embedder *j, qn_err *err)
{
    const qn_net *net = &j->e->model->net;
    const int32_t n = j->is_rank ? net->n_labels : net->n_embd;
    if (j->pooling == QN_POOLING_NONE) return QN_OK;
    if (j->pooling == QN_POOLING_MEAN)
        for (int32_t k = 0; k < net->n_embd; k++) j->pooled[k] = (float)(j->sum[k] / j->text[j->i_text].n);
    if (j->is_rank) {
        QN_TRY(qn_rank_scores(j->e, j->pooled, j->out, err));
    } else {
        QN_TRY(qn_dense_layers(j->e, j->pooled, err));
        memcpy(j->out, j->pooled, (size_t)n * sizeof(float));
    }
    if (!to_unit_length(j->out, n, j->unit_length && !j->is_rank))
        return qn_fail(err, QN_ERR_NUMERIC, "the result of text %d is not finite", j->i_text);
    j->out += n;
    return QN_OK;
}

/* The rows that a part gave: n of them, of tokens from n_done on. Sums are in double, tokens ascending. */
static qn_status take_rows(embedder *j, const float *row, int32_t n, qn_err *err)
{
    const int32_t n_embd = j->e->model->net.n_embd;
    if (j->pooling == QN_POOLING_MEAN && j->n_done == 0) memset(j->sum, 0, (size_t)n_embd * sizeof *j->sum);
    for (int32_t i = 0; i < n; i++, row += n_embd) {
        if (j->pooling == QN_POOLING_MEAN) {
            for (int32_t k = 0; k < n_embd; k++) j->sum[k] += (double)row[k];
            continue;
        }
        float *to = j->pooling == QN_POOLING_NONE ? j->out : j->pooled;
        memcpy(to, row, (size_t)n_embd * sizeof *to);
        if (j->pooling != QN_POOLING_NONE) continue;
        if (!to_unit_length(to, n_embd, j->unit_length))
            return qn_fail(err, QN_ERR_NUMERIC, "the result of token %d of text %d is not finite", j->n_done + i, j->i_text);
        j->out += n_embd;
    }
    return QN_OK;
}

static qn_status take_step(embedder *j, qn_err *err)
{
    const float *row = j->row;
    for (int32_t i = 0; i < j->n_parts; i++) {
        const qn_step_part *p = &j->part[i];
        QN_TRY(take_rows(j, row, p->n_outputs, err));
        row += (int64_t)p->n_outputs * j->e->model->net.n_embd;
        j->n_done += p->n;
        j->n_tokens_done += (uint64_t)p->n;
        if (j->n_done < j->text[j->i_text].n) continue;
        QN_TRY(finish_text(j, err));
        j->i_text++;
        j->n_done = 0;
    }
    return QN_OK;
}

/* ---- all of it ---- */

static qn_status embed_all(embedder *j, qn_err *err)
{
    qn_engine *e = j->e;
    while (j->i_text < j->n_texts) {
        if (j->progress && !j->progress(j->progress_user, j->n_tokens_done, j->n_tokens)) return qn_fail(err, QN_ERR_CANCELLED, "cancelled");
        pthread_mutex_lock(&e->lock);
        const qn_status status = run_step(j, err);
        if (status == QN_OK) {
            const qn_step_part *last = &j->part[j->n_parts - 1];
            const int32_t i_last = j->i_text + j->n_parts - 1, from = j->n_parts > 1 ? 0 : j->n_done;
            turn_timelines(j, from + last->n < j->text[i_last].n);
        }
        pthread_mutex_unlock(&e->lock);
        QN_TRY(status);
        QN_TRY(take_step(j, err));
    }
    if (j->progress) (void)j->progress(j->progress_user, j->n_tokens, j->n_tokens);
    return QN_OK;
}

static qn_status check_text(const qn_engine *e, const qn_embed_text *t, qn_err *err)
{
    const qn_net *net = &e->model->net;
    if (t->n < 1) return qn_fail(err, QN_ERR_ARG, "%d tokens to embed; it must be at least 1", t->n);
    if (t->n > e->n_ctx) return qn_fail(err, QN_ERR_CTX_FULL, "the text has %d tokens and the context holds %d", t->n, e->n_ctx);
    if (qn_net_is_encoder(net) && t->n > e->n_chunk)
        return qn_fail(err, QN_ERR_ARG, "the text has %d tokens; %s reads it in one step, which holds %d", t->n, e->model->arch, e->n_chunk);
    if (t->n_first < 0 || t->n_first > t->n) return qn_fail(err, QN_ERR_ARG, "%d of %d tokens are those of the first part", t->n_first, t->n);
    for (int32_t i = 0; i < t->n; i++)
        if (t->tokens[i] < 0 || t->tokens[i] >= net->n_vocab)
            return qn_fail(err, QN_ERR_ARG, "token %d is number %d; the vocabulary has %d", i, t->tokens[i], net->n_vocab);
    return QN_OK;
}

static qn_status choose_pooling(embedder *j, qn_pooling pooling, qn_err *err)
{
    qn_model_info info;
    qn_model_get_info(j->e->model, &info);
    if (pooling == QN_POOLING_MODEL) pooling = info.pooling;
    if (pooling < QN_POOLING_NONE || pooling > QN_POOLING_RANK) return qn_fail(err, QN_ERR_ARG, "there is no pooling %d", (int)pooling);
    j->is_rank = pooling == QN_POOLING_RANK;
    j->pooling = j->is_rank ? qn_rank_pooling(&j->e->model->net) : pooling;
    if (j->is_rank && !info.n_labels)
        return qn_fail(err, QN_ERR_UNSUPPORTED, "the model has no classifier (a tensor cls.output.weight), so that it has embeddings and no scores");
    return QN_OK;
}

static qn_status embed(embedder *j, qn_err *err)
{
    const size_t n_embd = (size_t)j->e->model->net.n_embd;
    j->row = qn_new((size_t)j->e->n_chunk * n_embd, sizeof *j->row);
    j->sum = qn_new(n_embd, sizeof *j->sum);
    j->pooled = qn_new(n_embd, sizeof *j->pooled);
    const bool has_room = j->row && j->sum && j->pooled;
    const qn_status status = has_room ? embed_all(j, err) : qn_fail(err, QN_ERR_NOMEM, "no memory for the hidden states of %d tokens", j->e->n_chunk);
    free(j->row);
    free(j->sum);
    free(j->pooled);
    return status;
}

qn_status qn_engine_embed(qn_engine *e, const qn_embed_text *texts, int32_t n_texts, const qn_embed_opts *opts, float *out, qn_err *err)
{
    qn_embed_opts o;
    QN_TRY(qn_opts_take(&o, sizeof o, opts, "embedding", err));
    embedder j = { .e = e, .text = texts, .n_texts = n_texts, .unit_length = o.unit_length, .out = out, .progress = o.progress,
                   .progress_user = o.progress_user, .most_kv = MOST_PARTS };
    QN_TRY(choose_pooling(&j, o.pooling, err));
    for (int32_t i = 0; i < n_texts; i++) {
        const qn_status status = check_text(e, &texts[i], err);
        if (status != QN_OK) return err ? qn_fail_in(err, status, "text %d", i) : status;
        j.n_tokens += (uint64_t)texts[i].n;
    }
    const qn_status status = embed(&j, err);
    pthread_mutex_lock(&e->lock);
    for (int32_t i = 0; i < j.n_kv; i++) qn_kv_close(&j.kv[i]);
    pthread_mutex_unlock(&e->lock);
    return status;
}

qn_status qn_session_embed(qn_session *s, const int32_t *tokens, int32_t n, qn_pooling pooling, bool unit_length, float *out, qn_err *err)
{
    const qn_embed_text text = { tokens, n, 0 };
    embedder j = { .e = s->engine, .text = &text, .n_texts = 1, .unit_length = unit_length, .out = out, .cancel = &s->cancel, .kv = { s->kv },
                   .n_kv = 1, .most_kv = 1, .keeps = true };
    QN_TRY(choose_pooling(&j, pooling, err));
    QN_TRY(check_text(s->engine, &text, err));
    pthread_mutex_lock(&s->engine->lock);
    (void)qn_kv_rewind(s->kv, 0);
    pthread_mutex_unlock(&s->engine->lock);
    const qn_status status = embed(&j, err);
    atomic_store(&s->cancel, false);
    return status;
}

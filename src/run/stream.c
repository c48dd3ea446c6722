#include "src/run/draft.h"

#include "src/base/mem.h"
#include "src/base/opts.h"
#include "src/base/pool.h"
#include "src/sample/sampler.h"

#include <stdlib.h>
#include <string.h>

static qn_status check(const qn_engine *e, const int32_t *prompt, int32_t n_prompt, qn_err *err)
{
    const int32_t n_vocab = e->model->net.n_vocab;
    if (qn_net_is_encoder(&e->model->net))
        return qn_fail(err, QN_ERR_UNSUPPORTED, "%s is an encoder: it has embeddings of a text, and no next token", e->model->arch);
    if (n_prompt < 1) return qn_fail(err, QN_ERR_ARG, "the prompt is empty");
    for (int32_t i = 0; i < n_prompt; i++)
        if (prompt[i] < 0 || prompt[i] >= n_vocab)
            return qn_fail(err, QN_ERR_ARG, "prompt: there is no token %d; the vocabulary has %d", prompt[i], n_vocab);
    if (n_prompt > e->n_ctx)
        return qn_fail(err, QN_ERR_CTX_FULL, "the prompt has %d tokens and the context holds %d", n_prompt, e->n_ctx);
    return QN_OK;
}

qn_status qn_stream_open(qn_stream *s, qn_engine *e, qn_kv *kv, qn_sampler *sampler, const int32_t *prompt, int32_t n_prompt,
                         const qn_generate_opts *opts, qn_err *err)
{
    *s = (qn_stream){ .engine = e, .kv = kv, .sampler = sampler, .began = qn_now() };
    s->r = (qn_generate_result){ .finish = QN_FINISH_ERROR, .stop_index = -1 };
    QN_TRY(qn_opts_take(&s->o, sizeof s->o, opts, "generation", err));
    QN_TRY(check(e, prompt, n_prompt, err));
    int32_t most = e->n_ctx;
    if (s->o.max_tokens > 0 && s->o.max_tokens < most - n_prompt && !s->o.slide) most = n_prompt + s->o.max_tokens;
    s->token = qn_new((size_t)most + 1 + QN_DRAFT_MAX, sizeof *s->token);
    if (!s->token) return qn_fail(err, QN_ERR_NOMEM, "no memory for the tokens of an answer");
    const qn_status status = qn_textout_open(&s->out, s->o.stop, s->o.n_stop, err);
    if (status != QN_OK) {
        qn_stream_close(s);
        return status;
    }
    s->o.stop = NULL; /* the caller's */
    memcpy(s->token, prompt, (size_t)n_prompt * sizeof *prompt);
    s->n = s->n_prompt = s->n_delivered = s->r.n_prompt = n_prompt;
    for (int32_t i = 0; i < n_prompt; i++) qn_sampler_accept(sampler, prompt[i]);
    return QN_OK;
}

void qn_stream_close(qn_stream *s)
{
    qn_draft_forget(s);
    qn_textout_close(&s->out);
    qn_buf_free(&s->text);
    free(s->token);
    s->token = NULL;
}

/* The last token is always evaluated, for its logits. */
void qn_stream_match(qn_stream *s)
{
    const int32_t n = qn_kv_match(s->kv, s->token, s->n - 1);
    if (!s->is_cached_known) s->r.n_cached = n;
    s->is_cached_known = true;
    s->moved = false;
}

qn_step_part qn_stream_ask(qn_stream *s, int32_t budget)
{
    if (s->moved) qn_stream_match(s);
    const int32_t position = qn_kv_position(s->kv), n_left = s->n - position;
    /* A copy of a state is kept at the end of a whole block alone: the prompt stops there once, so that its next use begins there. */
    const int32_t stop = qn_kv_has_state(s->kv) ? (s->n - 1) / QN_KV_POSITIONS * QN_KV_POSITIONS - position : 0;
    if (stop > 1 && stop < budget) budget = stop;
    if (n_left > budget) {
        s->n_draft = s->n_asked = 0;
        return (qn_step_part){ .kv = s->kv, .token = s->token + position, .n = budget };
    }
    const int32_t room = s->engine->n_ctx - s->n;
    if (s->n_draft > budget - n_left) s->n_draft = budget - n_left;
    if (s->n_draft > room) s->n_draft = room;
    s->n_asked = 1 + s->n_draft;
    return (qn_step_part){ .kv = s->kv, .token = s->token + position, .n = n_left + s->n_draft, .n_outputs = s->n_asked };
}

static void end(qn_stream *s, qn_finish finish)
{
    s->ended = true;
    s->r.finish = finish;
}

/* A token has been chosen: does the answer go on? */
static qn_status take_token(qn_stream *s, int32_t id, qn_err *err)
{
    const qn_engine *e = s->engine;
    qn_str text;
    if (s->r.n_generated++ == 0) s->r.first_token_seconds = qn_now() - s->began;
    qn_sampler_accept(s->sampler, id);
    if (qn_token_is_end(e->model, id) && !s->o.ignore_end) {
        end(s, QN_FINISH_STOP);
        return QN_OK;
    }
    QN_TRY(qn_token_text(e->model, id, s->o.special, &text));
    QN_TRY(qn_textout_put(&s->out, text.ptr, text.len, &text, err));
    qn_buf_add(&s->text, text.ptr, text.len);
    if (s->text.failed) return qn_fail(err, QN_ERR_NOMEM, "no memory for the text of the answer");
    if (s->out.stopped) end(s, QN_FINISH_STOP);
    else if (s->r.n_generated == s->o.max_tokens || (s->n > e->n_ctx && !s->o.slide)) end(s, QN_FINISH_LENGTH);
    return QN_OK;
}

static qn_status choose(qn_stream *s, const float *logits, const qn_extremes *extremes, qn_err *err)
{
    const qn_engine *e = s->engine;
    for (int32_t i = 0; i < s->n_asked && !s->ended; i++) {
        int32_t id;
        const qn_extremes *x = extremes ? extremes + (int64_t)i * e->exec.n_groups : NULL;
        QN_TRY(qn_sampler_pick_grouped(s->sampler, logits + (int64_t)i * e->model->net.n_vocab, x, &id, err));
        const bool was_expected = i < s->n_draft && s->token[s->n] == id;
        s->token[s->n++] = id;
        if (was_expected) s->r.n_accepted++;
        QN_TRY(take_token(s, id, err));
        if (!was_expected) break;
    }
    return QN_OK;
}

void qn_stream_choose(qn_stream *s, const float *logits, const qn_extremes *extremes)
{
    if (s->n_asked == 0) return;
    if (s->read == 0) {
        s->read = qn_now();
        s->r.prompt_seconds = s->read - s->began;
    }
    s->r.n_drafted += s->n_draft;
    s->r.n_draft_steps += s->n_draft > 0;
    s->status = choose(s, logits, extremes, &s->err);
    s->n_draft = s->n_asked = 0;
    if (s->status != QN_OK) end(s, QN_FINISH_ERROR);
}

/* The context is full: the first blocks stay, and of what follows the older half goes. The rest is evaluated again, in its new places. */
static void slide(qn_stream *s)
{
    const int32_t n_ctx = s->engine->n_ctx;
    int32_t keep = (s->o.n_keep + QN_KV_POSITIONS - 1) / QN_KV_POSITIONS * QN_KV_POSITIONS;
    if (keep > n_ctx / 2) keep = n_ctx / 2 / QN_KV_POSITIONS * QN_KV_POSITIONS;
    const int32_t n_drop = (s->n - keep + 1) / 2;
    if (s->o.on_drop) s->o.on_drop(s->o.user, s->token + keep, n_drop);
    s->n -= n_drop;
    s->n_delivered = s->n_delivered > n_drop ? s->n_delivered - n_drop : 0;
    memmove(s->token + keep, s->token + keep + n_drop, (size_t)(s->n - keep) * sizeof *s->token);
    s->moved = true;
}

void qn_stream_settle(qn_stream *s)
{
    const int32_t n = s->n - 1; /* the last one chosen is not evaluated */
    if (qn_kv_position(s->kv) <= n || qn_kv_rewind(s->kv, n)) return;
    /* a state of then is lost: what has come since the last one that was kept is evaluated again */
    if (!qn_kv_rewind(s->kv, s->n_held)) (void)qn_kv_match(s->kv, s->token, n);
}

static void hand_on(qn_stream *s, qn_str text)
{
    if (text.len && s->o.on_text && !s->wants_no_more) s->wants_no_more = !s->o.on_text(s->o.user, text.ptr, text.len);
}

void qn_stream_deliver(qn_stream *s)
{
    for (; s->n_delivered < s->n; s->n_delivered++)
        if (s->o.on_token) s->o.on_token(s->o.user, s->token[s->n_delivered]);
    hand_on(s, (qn_str){ s->text.ptr, s->text.len });
    s->text.len = 0;
    if (s->wants_no_more && (!s->ended || s->r.finish == QN_FINISH_LENGTH)) end(s, QN_FINISH_CANCELLED);
    if (!s->ended && s->n > s->engine->n_ctx) slide(s);
}

/* What is still held back goes out whatever ended the answer. */
qn_status qn_stream_end(qn_stream *s, qn_status status, qn_err *err)
{
    qn_str text;
    if (status == QN_OK && s->status != QN_OK) {
        status = s->status;
        if (err) *err = s->err;
    }
    if (status == QN_ERR_CANCELLED) {
        s->r.finish = QN_FINISH_CANCELLED;
        status = QN_OK;
    } else if (status != QN_OK) {
        s->r.finish = QN_FINISH_ERROR;
    }
    qn_err *end_err = status == QN_OK ? err : NULL; /* the first fault is the one to tell of */
    const qn_status last = qn_textout_end(&s->out, &text, end_err);
    hand_on(s, text);
    if (last != QN_OK) s->r.finish = QN_FINISH_ERROR; /* the end of the text is not there */
    else if (s->wants_no_more && s->r.finish == QN_FINISH_LENGTH) s->r.finish = QN_FINISH_CANCELLED;
    s->r.stop_index = s->out.i_stop;
    if (s->out.i_stop >= 0 && s->r.finish == QN_FINISH_LENGTH) s->r.finish = QN_FINISH_STOP; /* found by the end of the text */
    if (s->read != 0) s->r.generate_seconds = qn_now() - s->read;
    else s->r.prompt_seconds = qn_now() - s->began;
    return status != QN_OK ? status : last;
}

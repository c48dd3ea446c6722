/* Generation: prompt in, text out, one token at a time. */
#include "src/base/mem.h"
#include "src/base/pool.h"
#include "src/run/engine.h"
#include "src/run/textout.h"
#include "src/sample/sampler.h"

#include <stdlib.h>
#include <string.h>

/* What one generation needs on its way. */
typedef struct generation {
    qn_session *s;
    qn_sampler *sampler;
    const qn_generate_opts *o;
    qn_textout out;
    float *logits;       /* [n_vocab] */
    double began;
    bool wants_no_more;  /* on_text returned false */
} generation;

static void hand_on(generation *g, qn_str text)
{
    if (text.len && g->o->on_text && !g->wants_no_more) g->wants_no_more = !g->o->on_text(g->o->user, text.ptr, text.len);
}

/* The prompt's last token is always evaluated, for its logits; of the rest, what the session has already is not evaluated again. */
static qn_status read_prompt(generation *g, const int32_t *prompt, int32_t n_prompt, qn_generate_result *r, qn_err *err)
{
    r->n_prompt = n_prompt;
    r->n_cached = qn_session_rewind(g->s, prompt, n_prompt - 1);
    for (int32_t i = 0; i < n_prompt; i++) qn_sampler_accept(g->sampler, prompt[i]);
    const qn_status status = qn_session_eval(g->s, prompt + r->n_cached, n_prompt - r->n_cached, g->logits, err);
    r->prompt_seconds = qn_now() - g->began;
    return status;
}

/* Choose a token and let its text out. *ends is set when it is the last one, with the reason in r. */
static qn_status take_token(generation *g, int32_t *token, bool *ends, qn_generate_result *r, qn_err *err)
{
    const qn_engine *e = g->s->engine;
    qn_str text;
    QN_TRY(qn_sampler_pick_grouped(g->sampler, g->logits, e->exec.extremes, token, err));
    if (r->n_generated++ == 0) r->first_token_seconds = qn_now() - g->began;
    qn_sampler_accept(g->sampler, *token);
    if (g->o->on_token) g->o->on_token(g->o->user, *token);
    *ends = true;
    r->finish = QN_FINISH_STOP;
    if (qn_token_is_end(e->model, *token) && !g->o->ignore_end) return QN_OK;
    QN_TRY(qn_token_text(e->model, *token, g->o->special, &text));
    QN_TRY(qn_textout_put(&g->out, text.ptr, text.len, &text, err));
    hand_on(g, text);
    if (g->out.stopped) return QN_OK;
    r->finish = QN_FINISH_CANCELLED;
    if (g->wants_no_more) return QN_OK;
    r->finish = QN_FINISH_LENGTH;
    *ends = r->n_generated == g->o->max_tokens || g->s->n >= e->n_ctx;
    return QN_OK;
}

static qn_status generate(generation *g, const int32_t *prompt, int32_t n_prompt, qn_generate_result *r, qn_err *err)
{
    QN_TRY(read_prompt(g, prompt, n_prompt, r, err));
    const double began = qn_now();
    qn_status status;
    for (;;) {
        int32_t token;
        bool ends = false;
        status = take_token(g, &token, &ends, r, err);
        if (status != QN_OK || ends) break;
        status = qn_session_eval(g->s, &token, 1, g->logits, err);
        if (status != QN_OK) break;
    }
    r->generate_seconds = qn_now() - began;
    return status;
}

/* What is still held back goes out whatever ended the answer. */
static qn_status finish(generation *g, qn_status status, qn_generate_result *r, qn_err *err)
{
    qn_str text;
    if (status == QN_ERR_CANCELLED) {
        r->finish = QN_FINISH_CANCELLED;
        status = QN_OK;
    } else if (status != QN_OK) {
        r->finish = QN_FINISH_ERROR;
    }
    qn_err *end_err = status == QN_OK ? err : NULL; /* the first fault is the one to tell of */
    const qn_status end = qn_textout_end(&g->out, &text, end_err);
    hand_on(g, text);
    r->stop_index = g->out.i_stop;
    if (g->out.i_stop >= 0 && r->finish == QN_FINISH_LENGTH) r->finish = QN_FINISH_STOP; /* found by the end of the text */
    return status != QN_OK ? status : end;
}

static qn_status check(const qn_engine *e, const int32_t *prompt, int32_t n_prompt, qn_err *err)
{
    const int32_t n_vocab = e->model->net.n_vocab;
    if (n_prompt < 1) return qn_fail(err, QN_ERR_ARG, "the prompt is empty");
    for (int32_t i = 0; i < n_prompt; i++)
        if (prompt[i] < 0 || prompt[i] >= n_vocab)
            return qn_fail(err, QN_ERR_ARG, "prompt: there is no token %d; the vocabulary has %d", prompt[i], n_vocab);
    if (n_prompt > e->n_ctx)
        return qn_fail(err, QN_ERR_CTX_FULL, "the prompt has %d tokens and the context holds %d", n_prompt, e->n_ctx);
    return QN_OK;
}

qn_status qn_session_generate(qn_session *s, const int32_t *prompt, int32_t n_prompt, qn_sampler *sampler, const qn_generate_opts *opts,
                              qn_generate_result *result, qn_err *err)
{
    qn_generate_opts o = { 0 };
    qn_generate_result r = { .finish = QN_FINISH_ERROR, .stop_index = -1 };
    if (opts) memcpy(&o, opts, opts->size < sizeof o ? opts->size : sizeof o);
    if (result) *result = r;
    QN_TRY(check(s->engine, prompt, n_prompt, err));
    generation g = { .s = s, .sampler = sampler, .o = &o, .began = qn_now() };
    QN_TRY(qn_textout_open(&g.out, o.stop, o.n_stop, err));
    g.logits = qn_new((size_t)s->engine->model->net.n_vocab, sizeof *g.logits);
    const qn_status status = g.logits ? finish(&g, generate(&g, prompt, n_prompt, &r, err), &r, err)
                                      : qn_fail(err, QN_ERR_NOMEM, "no memory for the logits of a step");
    free(g.logits);
    qn_textout_close(&g.out);
    atomic_store(&s->cancel, false); /* a call that came after the last evaluation was meant for this answer */
    if (result) *result = r;
    return status;
}

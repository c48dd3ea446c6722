/* A model that drafts: smaller than the one it drafts for, or the same one in fewer bits. It has an engine of its own on the same threads; the drafts
 * of all streams advance together, a token in each of its steps.
 *
 * A smaller model has a timeline for every stream, and reads its text. A twin reads the keys and values that the model itself has made: there is
 * nothing to catch up with, and its roundings do not add up from token to token. Its own for drafted tokens lie behind the end of the model's
 * timeline, where the model's step writes over them. */
#include "src/base/mem.h"
#include "src/base/pool.h"
#include "src/run/draft.h"
#include "src/run/session_file.h"
#include "src/sample/sampler.h"
#include "src/token/vocab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Tokens that a draft begins with in a text that it does not know; the rest is read when drafts have earned the time for it. */
enum { GLANCE = 64 };
/* Tokens left for the step that drafts the first token; what is more is read before. */
enum { READ_WITH = 8 };

typedef struct view {
    qn_kv *kv;
    int32_t base;            /* token of the text that is the timeline's first               */
    int32_t n_held;          /* position whose state is kept                                 */
    int32_t n_pending;       /* tokens of the next step, the last ones of text and draft     */
    int32_t n_ahead;         /* of a twin: tokens evaluated behind the model's timeline      */
} view;

/* ---- vocabularies ---- */

/* Padding at the end of a vocabulary, which no text has. */
static bool is_padding(const qn_model *m, int32_t id)
{
    const uint8_t type = m->vocab->type[id];
    return type == QN_T_UNUSED || type == QN_T_CONTROL;
}

static qn_status check_vocab(const qn_model *model, const qn_model *draft, qn_err *err)
{
    const qn_vocab *a = model->vocab, *b = draft->vocab;
    const int32_t n = a->n < b->n ? a->n : b->n;
    for (int32_t i = 0; i < n; i++)
        if (a->text[i].len != b->text[i].len || memcmp(a->text[i].ptr, b->text[i].ptr, a->text[i].len) != 0)
            return qn_fail(err, QN_ERR_ARG, "the vocabulary of the draft model differs from token %d on: it is '%.*s' there, and '%.*s' in the model", i,
                           QN_STR_ARG(b->text[i]), QN_STR_ARG(a->text[i]));
    const qn_model *longer = a->n > n ? model : draft;
    for (int32_t i = n; i < longer->vocab->n; i++)
        if (!is_padding(longer, i))
            return qn_fail(err, QN_ERR_ARG, "the vocabulary of the draft model differs from token %d on: '%.*s' is in %s alone", i,
                           QN_STR_ARG(longer->vocab->text[i]), longer == model ? "the model" : "the draft model");
    return QN_OK;
}

/* The same model, in other formats: its keys and values are nearly the model's own. */
static bool is_twin(const qn_model *model, const qn_model *draft)
{
    char a[33], b[33];
    qn_model_fingerprint(model, a);
    qn_model_fingerprint(draft, b);
    return !strcmp(a, b);
}

qn_status qn_draft_model_open(qn_drafter *d, const qn_model *model, qn_err *err)
{
    const qn_engine *host = d->engine;
    qn_engine_info info;
    QN_TRY(check_vocab(host->model, model, err));
    qn_engine_get_info(host, &info);
    qn_engine_opts o = { .size = sizeof o, .n_ctx = host->n_ctx, .n_chunk = host->n_chunk, .cpu = host->kernels.level, .n_sessions = host->n_sessions };
    d->shares_kv = is_twin(host->model, model);
    if (d->shares_kv) {
        o.cache_type_k = info.cache_type_k;
        o.cache_type_v = info.cache_type_v;
    }
    const qn_status s = qn_engine_open_guest(&d->model, model, &o, host, !d->shares_kv, err);
    if (s != QN_OK) return err ? qn_fail_in(err, s, "the draft model") : s;
    if (model->net.n_vocab == host->model->net.n_vocab) return QN_OK;
    void *logits;
    d->logits_bytes = (size_t)host->model->net.n_vocab * sizeof(float);
    QN_TRY(qn_pages_new(&logits, d->logits_bytes, "the logits of a draft", err));
    d->logits = logits;
    return QN_OK;
}

/* ---- streams ---- */

static bool stream_open(qn_drafter *d, qn_guess *g)
{
    view *v = g->own = qn_new(1, sizeof *v);
    return v && (d->shares_kv || qn_kv_open(&v->kv, d->model->kv_pool, NULL) == QN_OK);
}

static void stream_close(qn_drafter *d, qn_guess *g)
{
    view *v = g->own;
    if (!v) return;
    if (v->kv && !d->shares_kv) qn_kv_close(&v->kv);
    free(v);
    g->own = NULL;
}

/* Where the model has a state and drafted something else than what came, only the position before the draft can be gone back to. */
static void leave_draft(const view *v, const int32_t *token, int32_t n)
{
    const int32_t position = qn_kv_position(v->kv);
    if (qn_kv_has_state(v->kv) && position > v->n_held && (position > n || memcmp(qn_kv_tokens(v->kv) + v->n_held, token + v->n_held,
                                                                                  (size_t)(position - v->n_held) * sizeof *token) != 0))
        (void)qn_kv_rewind(v->kv, v->n_held);
}

/* @return tokens of the text that the timeline lacks */
static int32_t match(view *v, const qn_stream *s)
{
    const int32_t *token = s->token + v->base, n = s->n - v->base;
    leave_draft(v, token, n);
    return n - qn_kv_match(v->kv, token, n - 1);
}

/* Choose what the timeline knows of the text: all of it, when that costs little or less than what drafts have saved; else its end. */
static int32_t look_at(const qn_drafter *d, const qn_guess *g, view *v)
{
    const qn_stream *s = g->stream;
    if (v->base >= s->n) v->base = 0;
    const double token = d->read > 0 ? d->read : qn_line_at(&d->verify, 1) / 8, saved = g->plain - g->spent;
    if (v->base > 0 && saved > token * s->n) v->base = 0;
    const int32_t n = match(v, s);
    if (n <= GLANCE || saved > token * n) return n;
    v->base = s->n - GLANCE;
    return match(v, s);
}

/* Read the text up to what the first step of the draft will take. */
static bool read_text(qn_drafter *d, const qn_guess *g, view *v, int32_t n)
{
    qn_engine *m = d->model;
    const int32_t *token = g->stream->token + g->stream->n;
    for (int32_t i = 1; i <= n; i++)
        if (token[-i] >= m->model->net.n_vocab) return false; /* the longer vocabulary's padding */
    const double began = qn_now();
    const int32_t n_read = n > READ_WITH ? n - 1 : 0;
    for (int32_t left = n_read; left > 0;) {
        const int32_t now = left < m->n_chunk ? left : m->n_chunk;
        const qn_step_part part = { .kv = v->kv, .token = token - 1 - left, .n = now };
        if (!qn_kv_reserve(v->kv, qn_kv_position(v->kv) + now) || !qn_engine_step(m, &part, 1, NULL, NULL)) return false;
        left -= now;
    }
    v->n_pending = n - n_read;
    if (n_read) d->read = 0.5 * (d->read ? d->read : (qn_now() - began) / n_read) + 0.5 * (qn_now() - began) / n_read;
    return true;
}

/* ---- drafting ---- */

static int32_t grade_of(double sure)
{
    static const double above[QN_GRADES - 1] = { 0.05, 0.15, 0.3, 0.5, 0.7, 0.9, 0.98 };
    int32_t g = 0;
    while (g < QN_GRADES - 1 && sure >= above[g]) g++;
    return g;
}

/* A row of the model's logits in the length of the engine's vocabulary. */
static const float *logits_of(const qn_drafter *d, int32_t row)
{
    const int32_t n = d->model->model->net.n_vocab, n_want = d->engine->model->net.n_vocab;
    const float *logits = d->model->logits + (int64_t)row * n;
    if (!d->logits) return logits;
    memcpy(d->logits, logits, (size_t)(n < n_want ? n : n_want) * sizeof *logits);
    for (int32_t i = n; i < n_want; i++) d->logits[i] = -INFINITY;
    return d->logits;
}

/* @return false: the draft of this stream ends here */
static bool choose(const qn_drafter *d, qn_guess *g, int32_t row, const qn_extremes *extremes)
{
    int32_t id;
    double sure;
    qn_stream *s = g->stream;
    const qn_extremes *x = extremes && !d->logits ? extremes + (int64_t)row * d->model->exec.n_groups : NULL;
    if (qn_sampler_guess(s->sampler, logits_of(d, row), x, &id, &sure, NULL) != QN_OK) return false;
    if (id >= d->model->model->net.n_vocab) return false;
    qn_sampler_accept(s->sampler, id);
    qn_guess_add(d, g, id, grade_of(sure));
    return s->o.ignore_end || !qn_token_is_end(s->engine->model, id);
}

/* Of those whose next step has room, the steps' parts. @return their number; they are moved to the front */
static int32_t make_parts(const qn_drafter *d, qn_guess **g, int32_t n, qn_step_part *part, int32_t *ahead, int32_t *n_tokens)
{
    int32_t n_parts = 0;
    *n_tokens = 0;
    for (int32_t i = 0; i < n; i++) {
        const view *v = g[i]->own;
        const int32_t end = qn_kv_position(v->kv) + v->n_ahead + v->n_pending;
        if (*n_tokens + v->n_pending > d->model->n_chunk || (d->shares_kv && qn_kv_missing(v->kv, end) > 0) || !qn_kv_reserve(v->kv, end)) continue;
        part[n_parts] = (qn_step_part){
            .kv = v->kv, .token = g[i]->stream->token + g[i]->stream->n + g[i]->n - v->n_pending, .n = v->n_pending, .n_outputs = 1,
        };
        ahead[n_parts] = v->n_ahead;
        *n_tokens += v->n_pending;
        g[n_parts++] = g[i];
    }
    return n_parts;
}

/* A token more for each of them. @return how many of them go on, moved to the front */
static int32_t advance(qn_drafter *d, qn_guess **g, int32_t n)
{
    qn_engine *m = d->model;
    qn_step_part part[QN_DRAFT_MAX];
    int32_t ahead[QN_DRAFT_MAX], n_tokens;
    const int32_t n_parts = make_parts(d, g, n, part, ahead, &n_tokens);
    const double began = qn_now();
    if (n_parts == 0) return 0;
    if (d->shares_kv) qn_engine_look_ahead(m, part, ahead, n_parts, m->logits);
    else if (!qn_engine_step(m, part, n_parts, m->logits, NULL)) return 0;
    if (n_tokens == n_parts) qn_line_note(&d->draft, n_parts, qn_now() - began);
    int32_t n_left = 0;
    for (int32_t i = 0; i < n_parts; i++) {
        view *v = g[i]->own;
        if (d->shares_kv) v->n_ahead += v->n_pending;
        else if (g[i]->n == 0 && qn_kv_hold(v->kv)) v->n_held = qn_kv_position(v->kv);
        v->n_pending = 1;
        if (choose(d, g[i], i, n_parts <= QN_OWN_ROWS ? m->exec.extremes : NULL)) g[n_left++] = g[i];
    }
    return n_left;
}

/* A model that has not drafted yet is taken to need as long as its weights ask for. */
static double seconds_of(const qn_drafter *d, int32_t n)
{
    const double at = qn_line_at(&d->draft, n) / n;
    return at > 0 ? at : qn_line_at(&d->verify, 1) * (double)d->model->model->arena_bytes / (double)d->engine->model->arena_bytes;
}

static int32_t those_that_go_on(const qn_drafter *d, qn_guess **g, int32_t n)
{
    int32_t n_left = 0;
    const double seconds = n ? seconds_of(d, n) : 0;
    for (int32_t i = 0; i < n; i++)
        if (qn_guess_goes_on(d, g[i], -1, seconds)) g[n_left++] = g[i];
    return n_left;
}

/* Make the timeline ready for the first step. */
static bool begin(qn_drafter *d, qn_guess *g)
{
    view *v = g->own;
    if (!d->shares_kv) return read_text(d, g, v, look_at(d, g, v));
    v->kv = g->stream->kv;
    v->n_ahead = 0;
    v->n_pending = g->stream->n - qn_kv_position(v->kv);
    return qn_kv_hold(v->kv);
}

static void end(qn_drafter *d, qn_guess *g)
{
    const view *v = g->own;
    if (d->shares_kv && qn_kv_has_state(v->kv) && v->n_ahead > 0) qn_kv_abandon(v->kv); /* back to the state that was kept */
    qn_sampler_guess_end(g->stream->sampler);
}

static void propose(qn_drafter *d, qn_guess *const *guesses, int32_t n)
{
    qn_guess *g[QN_DRAFT_MAX], *begun[QN_DRAFT_MAX];
    memcpy(g, guesses, (size_t)n * sizeof *g);
    n = those_that_go_on(d, g, n);
    int32_t n_begun = 0;
    for (int32_t i = 0; i < n; i++)
        if (begin(d, g[i])) begun[n_begun++] = g[i];
    for (int32_t i = 0; i < n_begun; i++) qn_sampler_guess_begin(begun[i]->stream->sampler);
    memcpy(g, begun, (size_t)n_begun * sizeof *g);
    for (n = n_begun; n > 0; n = those_that_go_on(d, g, n)) n = advance(d, g, n);
    for (int32_t i = 0; i < n_begun; i++) end(d, begun[i]);
}

const qn_draft_kind qn_draft_model = { { 0.45, 0.55, 0.65, 0.75, 0.85, 0.9, 0.95, 0.98 }, stream_open, stream_close, propose };

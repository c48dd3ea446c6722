#include "src/run/draft.h"

#include "src/base/mem.h"
#include "src/base/pool.h"

#include <stdlib.h>

/* Weights in tokens: of what a kind begins with, for all streams; of all streams, for one. */
enum { WEIGHT_AT_FIRST = 4, WEIGHT_OF_ALL = 4 };
/* Tokens of a grade that are remembered of a stream, and of all; rounds that the gain is a mean of. */
enum { STREAM_MEMORY = 50, ALL_MEMORY = 400, GAIN_MEMORY = 50 };
/* Rounds until a drafter that does not pay is tried again: doubled each time that it still does not. */
enum { QUIET_LEAST = 8, QUIET_MOST = 512 };

/* ---- open and close ---- */

static qn_status open_kind(qn_drafter *d, const qn_engine_opts *o, qn_err *err)
{
    d->n_max = o->draft_max ? o->draft_max : QN_DRAFT_DEFAULT;
    if (d->n_max < 1 || d->n_max > QN_DRAFT_MAX)
        return qn_fail(err, QN_ERR_ARG, "a draft of %d tokens; it must be 1 to %d", d->n_max, QN_DRAFT_MAX);
    if (o->draft_ngram && o->draft_model) return qn_fail(err, QN_ERR_ARG, "a draft is of n-grams or of a model, not of both");
    d->kind = o->draft_ngram ? &qn_draft_ngram : &qn_draft_model;
    return o->draft_ngram ? QN_OK : qn_draft_model_open(d, o->draft_model, err);
}

qn_status qn_drafter_open(qn_engine *e, const qn_engine_opts *opts, qn_err *err)
{
    if (!opts->draft_model && !opts->draft_ngram) return QN_OK;
    qn_drafter *d = qn_new(1, sizeof *d);
    if (!d) return qn_fail(err, QN_ERR_NOMEM, "no memory for drafts");
    d->engine = e;
    if (pthread_mutex_init(&d->lock, NULL) != 0) {
        free(d);
        return qn_fail(err, QN_ERR_NOMEM, "the system has no lock left for drafts");
    }
    const qn_status s = open_kind(d, opts, err);
    if (s == QN_OK) e->drafter = d;
    else qn_drafter_close(&d);
    return s;
}

void qn_drafter_close(qn_drafter **drafter)
{
    qn_drafter *d = *drafter;
    if (!d) return;
    qn_engine_close(&d->model);
    void *logits = d->logits;
    qn_pages_free(&logits, d->logits_bytes);
    pthread_mutex_destroy(&d->lock);
    free(d);
    *drafter = NULL;
}

void qn_drafter_bytes(const qn_drafter *d, uint64_t *kv_bytes, uint64_t *scratch_bytes)
{
    qn_engine_info info = { 0 };
    if (d->model) qn_engine_get_info(d->model, &info);
    *kv_bytes = info.kv_bytes;
    *scratch_bytes = info.scratch_bytes + d->logits_bytes;
}

/* ---- what it learns ---- */

void qn_drafter_note_step(qn_drafter *d, int32_t n_tokens, double seconds)
{
    qn_line_note(&d->verify, n_tokens, seconds);
    d->step_seconds = seconds;
}

static double chance_of(const qn_drafter *d, const qn_guess *g, int32_t grade)
{
    return qn_odds_chance(&g->odds, grade, qn_odds_chance(&d->odds, grade, d->kind->at_first[grade], WEIGHT_AT_FIRST), WEIGHT_OF_ALL);
}

/* The chance of a token whose grade is not known yet: the mean, as often as grades were seen. */
static double chance_of_any(const qn_drafter *d, const qn_guess *g)
{
    double n = 0, sum = 0;
    for (int32_t i = 0; i < QN_GRADES; i++) {
        const double w = g->odds.n[i] + WEIGHT_OF_ALL * (d->odds.n[i] + 1) / (ALL_MEMORY + QN_GRADES);
        n += w;
        sum += w * chance_of(d, g, i);
    }
    return sum / n;
}

/* What became of the last round's draft. */
static void learn(qn_drafter *d, qn_guess *g)
{
    const qn_generate_result *r = &g->stream->r;
    const int32_t n_tried = r->n_drafted - g->n_drafted, n_came = r->n_accepted - g->n_accepted, n_new = r->n_generated - g->n_generated;
    for (int32_t i = 0; i < n_tried && i <= n_came; i++) {
        qn_odds_note(&g->odds, g->grade[i], i < n_came, STREAM_MEMORY);
        qn_odds_note(&d->odds, g->grade[i], i < n_came, ALL_MEMORY);
    }
    g->n_drafted = r->n_drafted;
    g->n_accepted = r->n_accepted;
    g->n_generated = r->n_generated;
    if (d->step_seconds == 0 || n_new == 0 || d->n_streams == 0) return;
    const double plain = qn_line_at(&d->verify, d->n_streams), keep = 1 - 1.0 / GAIN_MEMORY;
    d->n_tokens = d->n_tokens * keep + n_new;
    d->n_plain = d->n_plain * keep + (d->draft_seconds + d->step_seconds) / plain;
    g->spent += d->draft_seconds + d->step_seconds;
    g->plain += n_new * plain;
    g->stream->r.draft_gain = g->plain / g->spent;
}

/* Tokens that come in the time of a plain step of all streams, for each of them: what time is worth now. */
static double gain(const qn_drafter *d)
{
    return d->n_tokens > d->n_plain ? d->n_tokens / d->n_plain : 1;
}

/* One more token is worth its time when it comes with a better chance than that time brings tokens otherwise: at the best length the last
 * token earns just the mean. */
bool qn_guess_goes_on(const qn_drafter *d, const qn_guess *g, int32_t grade, double seconds)
{
    const double step = qn_line_at(&d->verify, d->n_streams);
    if (g->n >= g->n_most || step == 0) return false;
    if (g->is_probe && g->n == 0) return true;
    const double cost = (seconds + qn_line_slope(&d->verify)) / step * d->n_streams;
    return g->chance * (grade < 0 ? chance_of_any(d, g) : chance_of(d, g, grade)) > gain(d) * cost;
}

void qn_guess_add(const qn_drafter *d, qn_guess *g, int32_t token, int32_t grade)
{
    g->chance *= chance_of(d, g, grade);
    g->grade[g->n] = (uint8_t)grade;
    g->stream->token[g->stream->n + g->n++] = token;
}

/* ---- a round ---- */

static bool guess_open(qn_drafter *d, qn_stream *s)
{
    qn_guess *g = qn_new(1, sizeof *g);
    if (!g) return false;
    *g = (qn_guess){ .stream = s, .quiet_for = QUIET_LEAST };
    g->n_generated = s->r.n_generated;
    if (!d->kind->stream_open(d, g)) {
        d->kind->stream_close(d, g);
        free(g);
        return false;
    }
    s->guess = g;
    return true;
}

void qn_draft_forget(qn_stream *s)
{
    if (!s->guess) return;
    qn_drafter *d = s->engine->drafter;
    pthread_mutex_lock(&d->lock);
    d->kind->stream_close(d, s->guess);
    pthread_mutex_unlock(&d->lock);
    free(s->guess);
    s->guess = NULL;
}

/* It has chosen a token, and little is to be evaluated besides: no prompt, no timeline that gave its blocks away. */
static bool is_choosing(const qn_stream *s)
{
    return !s->ended && !s->moved && s->r.n_generated > 0 && s->n - qn_kv_position(s->kv) <= 1 + QN_DRAFT_MAX;
}

/* Tokens that the text has room for behind the one that comes anyway. */
static int32_t room_of(const qn_stream *s)
{
    const int32_t in_context = s->engine->n_ctx - s->n, left = s->o.max_tokens - s->r.n_generated - 1;
    return s->o.max_tokens > 0 && left < in_context ? left : in_context;
}

/* The streams that take part. @return their number */
static int32_t collect(qn_drafter *d, qn_stream *const *streams, int32_t n, qn_guess *g[QN_DRAFT_MAX])
{
    int32_t n_guesses = 0, n_streams = 0;
    for (int32_t i = 0; i < n; i++) {
        qn_stream *s = streams[i];
        s->n_draft = 0;
        if (!is_choosing(s) || (!s->guess && !guess_open(d, s))) continue;
        learn(d, s->guess);
        n_streams++;
        s->guess->n = s->guess->n_most = 0;
        if (n_guesses < QN_DRAFT_MAX && room_of(s) > 0) g[n_guesses++] = s->guess;
    }
    const int32_t share = n_guesses ? QN_DRAFT_MAX / n_guesses : 0, most = share < d->n_max ? share : d->n_max;
    for (int32_t i = 0; i < n_guesses; i++) {
        const int32_t room = room_of(g[i]->stream);
        g[i]->n_most = room < most ? room : most;
        g[i]->chance = 1;
        g[i]->is_probe = g[i]->n_quiet >= g[i]->quiet_for;
    }
    d->n_streams = n_streams;
    return n_guesses;
}

/* Hand the draft over, unless there is no memory for it. */
static void hand_over(qn_guess *g)
{
    qn_stream *s = g->stream;
    if (g->n == 0) {
        g->n_quiet++;
        return;
    }
    g->n_quiet = 0;
    g->quiet_for = !g->is_probe ? QUIET_LEAST : g->quiet_for < QUIET_MOST ? 2 * g->quiet_for : QUIET_MOST;
    if (qn_kv_missing(s->kv, s->n + g->n) > 0 || !qn_kv_hold(s->kv)) return;
    s->n_held = qn_kv_position(s->kv);
    s->n_draft = g->n;
}

void qn_engine_draft(qn_engine *e, qn_stream *const *streams, int32_t n)
{
    qn_drafter *d = e->drafter;
    qn_guess *g[QN_DRAFT_MAX];
    if (!d) return;
    pthread_mutex_lock(&d->lock);
    const int32_t n_guesses = collect(d, streams, n, g);
    const double began = qn_now();
    d->kind->propose(d, g, n_guesses);
    d->draft_seconds = qn_now() - began;
    d->step_seconds = 0;
    for (int32_t i = 0; i < n_guesses; i++) hand_over(g[i]);
    pthread_mutex_unlock(&d->lock);
}

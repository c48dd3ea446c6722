#include "src/sample/sampler.h"

#include "src/base/mem.h"
#include "src/sample/explog.h"

#include <math.h>
#include <stdlib.h>

struct qn_sampler {
    qn_sample_opts o;       /* checked; its pointers lead to nothing once open */
    qn_logit_bias *bias;    /* [o.n_bias] */
    qn_stage_id stage[QN_MAX_STAGES];
    int32_t n_stages;
    qn_sample_vocab vocab;
    qn_cands cands;
    qn_random random;
    qn_past past;
    int32_t *count;         /* [n_vocab] occurrences among the last o.penalty_last_n; NULL: penalties are off */
    qn_dry dry;             /* .longest NULL: off */
    qn_matcher breakers;
    double mu;              /* of mirostat: the largest surprise let through, in bits */
    bool no_memory;         /* accepting a token failed; the next pick says so */
    struct {
        qn_random random;
        double mu;
        size_t n_past;
        bool no_memory;
        size_t *breaker; /* [breakers.n] */
        int32_t token[QN_GUESS_MAX]; /* counted since then */
        int32_t n;
    } guess;
};

static bool penalties_on(const qn_sample_opts *o)
{
    return o->penalty_last_n != 0 && (o->repeat_penalty != 1 || o->frequency_penalty != 0 || o->presence_penalty != 0);
}

static bool dry_on(const qn_sample_opts *o)
{
    return o->dry_multiplier != 0 && o->dry_last_n != 0;
}

static bool is_greedy(const qn_sample_opts *o)
{
    return o->temperature <= QN_COLD;
}

/* ---- the stages: each is left out of the chain when its option is off ---- */

static void run_penalties(qn_sampler *s)
{
    qn_penalise(&s->cands, s->count, s->o.repeat_penalty, s->o.frequency_penalty, s->o.presence_penalty);
}

static void run_dry(qn_sampler *s)
{
    qn_dry_apply(&s->dry, &s->cands, &s->past, s->o.dry_last_n < 0 ? SIZE_MAX : (size_t)s->o.dry_last_n, &s->no_memory);
}

static void run_top_n_sigma(qn_sampler *s)
{
    qn_cut_top_n_sigma(&s->cands, s->o.top_n_sigma);
}

static void run_top_k(qn_sampler *s)
{
    qn_cut_top_k(&s->cands, s->o.top_k);
}

static void run_typical(qn_sampler *s)
{
    qn_cut_typical(&s->cands, s->o.typical_p);
}

static void run_top_p(qn_sampler *s)
{
    qn_cut_top_p(&s->cands, s->o.top_p);
}

static void run_min_p(qn_sampler *s)
{
    qn_cut_min_p(&s->cands, s->o.min_p);
}

static void run_xtc(qn_sampler *s)
{
    qn_cut_xtc(&s->cands, s->o.xtc_probability, s->o.xtc_threshold, &s->random);
}

static void run_temperature(qn_sampler *s)
{
    const qn_sample_opts *o = &s->o;
    qn_heat(&s->cands, o->dyn_temp_range > 0
                           ? qn_dynamic_temperature(&s->cands, o->temperature, o->dyn_temp_range, o->dyn_temp_exponent)
                           : (double)o->temperature);
}

static void (*const run_stage[QN_MAX_STAGES])(qn_sampler *) = {
    [QN_STAGE_PENALTIES] = run_penalties,
    [QN_STAGE_DRY] = run_dry,
    [QN_STAGE_TOP_N_SIGMA] = run_top_n_sigma,
    [QN_STAGE_TOP_K] = run_top_k,
    [QN_STAGE_TYPICAL] = run_typical,
    [QN_STAGE_TOP_P] = run_top_p,
    [QN_STAGE_MIN_P] = run_min_p,
    [QN_STAGE_XTC] = run_xtc,
    [QN_STAGE_TEMPERATURE] = run_temperature,
};

/* Is the stage part of this chain? Greedy choice needs what moves logits, mirostat cuts in place of all others. */
static bool stage_on(const qn_sample_opts *o, qn_stage_id id, int32_t n_vocab)
{
    const bool cuts = !is_greedy(o) && o->mirostat == 0;
    switch (id) {
    case QN_STAGE_PENALTIES: return penalties_on(o);
    case QN_STAGE_DRY: return dry_on(o);
    case QN_STAGE_TOP_N_SIGMA: return cuts && o->top_n_sigma > 0;
    case QN_STAGE_TOP_K: return cuts && o->top_k > 0 && o->top_k < n_vocab;
    case QN_STAGE_TYPICAL: return cuts && o->typical_p < 1;
    case QN_STAGE_TOP_P: return cuts && o->top_p < 1;
    case QN_STAGE_MIN_P: return cuts && o->min_p > 0;
    case QN_STAGE_XTC: return cuts && o->xtc_probability > 0 && o->xtc_threshold <= 0.5f;
    case QN_STAGE_TEMPERATURE: return !is_greedy(o) && (o->temperature != 1 || o->dyn_temp_range > 0);
    }
    return false;
}

static qn_status take_order(qn_sampler *s, qn_err *err)
{
    qn_stage_id named[QN_MAX_STAGES];
    int32_t n;
    QN_TRY(qn_sample_order_parse(s->o.order ? s->o.order : qn_sampler_default_order(), named, &n, err));
    for (int32_t i = 0; i < n; i++)
        if (stage_on(&s->o, named[i], s->vocab.n_vocab)) s->stage[s->n_stages++] = named[i];
    return QN_OK;
}

/* ---- open and close ---- */

static size_t window_of(int32_t last_n)
{
    return last_n < 0 ? SIZE_MAX : (size_t)last_n;
}

static qn_status take_penalties(qn_sampler *s, qn_err *err)
{
    if (!penalties_on(&s->o)) return QN_OK;
    s->count = qn_new((size_t)s->vocab.n_vocab, sizeof *s->count);
    if (!s->count) return qn_fail(err, QN_ERR_NOMEM, "no memory for the counts of the penalties");
    if (s->o.penalty_last_n > 0) s->past.window = (size_t)s->o.penalty_last_n; /* "all" needs no tokens: the counts only grow */
    return QN_OK;
}

static qn_status take_dry(qn_sampler *s, qn_err *err)
{
    static const char *const standard[] = { "\n", ":", "\"", "*" };
    const qn_sample_opts *o = &s->o;
    if (!dry_on(o)) return QN_OK;
    QN_TRY(qn_matcher_open(&s->breakers, o->dry_breakers ? o->dry_breakers : standard, o->dry_breakers ? o->n_dry_breakers : 4,
                           "dry_breakers", err));
    s->dry = (qn_dry){ .multiplier = o->dry_multiplier, .base = o->dry_base, .allowed_length = o->dry_allowed_length };
    s->dry.longest = qn_new((size_t)s->vocab.n_vocab, sizeof *s->dry.longest);
    s->guess.breaker = qn_new((size_t)s->breakers.n, sizeof *s->guess.breaker);
    if (!s->dry.longest || !s->guess.breaker) return qn_fail(err, QN_ERR_NOMEM, "no memory for the DRY sampler");
    if (window_of(o->dry_last_n) > s->past.window) s->past.window = window_of(o->dry_last_n);
    return QN_OK;
}

static qn_status open_parts(qn_sampler *s, const qn_sample_opts *opts, qn_err *err)
{
    QN_TRY(qn_sample_opts_check(&s->o, opts, s->vocab.n_vocab, err));
    s->bias = qn_new((size_t)s->o.n_bias, sizeof *s->bias);
    if (!s->bias) return qn_fail(err, QN_ERR_NOMEM, "no memory for %d biases", s->o.n_bias);
    if (s->o.n_bias) memcpy(s->bias, s->o.bias, (size_t)s->o.n_bias * sizeof *s->bias);
    if (s->o.seed == QN_SEED_RANDOM) s->o.seed = qn_random_system_seed();
    QN_TRY(take_order(s, err));
    QN_TRY(take_penalties(s, err));
    QN_TRY(take_dry(s, err));
    return qn_cands_open(&s->cands, s->vocab.n_vocab, err);
}

qn_status qn_sampler_open_vocab(qn_sampler **out, const qn_sample_vocab *vocab, const qn_sample_opts *opts, qn_err *err)
{
    *out = NULL;
    if (vocab->n_vocab < 1) return qn_fail(err, QN_ERR_ARG, "a sampler needs a vocabulary of at least one token");
    qn_sampler *s = qn_new(1, sizeof *s);
    if (!s) return qn_fail(err, QN_ERR_NOMEM, "no memory for a sampler");
    s->vocab = *vocab;
    const qn_status status = open_parts(s, opts, err);
    if (status != QN_OK) {
        qn_sampler_close(&s);
        return status;
    }
    s->o.bias = NULL;
    s->o.dry_breakers = NULL;
    s->o.order = NULL;
    qn_sampler_reset(s);
    *out = s;
    return QN_OK;
}

void qn_sampler_close(qn_sampler **sampler)
{
    qn_sampler *s = *sampler;
    if (!s) return;
    qn_cands_close(&s->cands);
    qn_matcher_close(&s->breakers);
    free(s->bias);
    free(s->past.token);
    free(s->count);
    free(s->dry.z);
    free(s->dry.longest);
    free(s->guess.breaker);
    free(s);
    *sampler = NULL;
}

uint64_t qn_sampler_seed(const qn_sampler *s)
{
    return s->o.seed;
}

void qn_sampler_reset(qn_sampler *s)
{
    qn_random_seed(&s->random, s->o.seed);
    qn_matcher_reset(&s->breakers);
    if (s->count) memset(s->count, 0, (size_t)s->vocab.n_vocab * sizeof *s->count);
    s->past.n = 0;
    s->mu = 2 * (double)s->o.mirostat_tau;
    s->no_memory = false;
}

/* ---- tokens looked back on ---- */

void qn_past_add(qn_past *p, qn_past_token t, bool *no_memory)
{
    if (p->n / 2 >= p->window && !p->keeps_all) { /* twice the window is full: moving one down costs one copy a token on average */
        memmove(p->token, p->token + (p->n - p->window), p->window * sizeof *p->token);
        p->n = p->window;
    }
    if (!qn_grow((void **)&p->token, &p->cap, p->n + 1, sizeof *p->token)) {
        *no_memory = true;
        return;
    }
    p->token[p->n++] = t;
}

static bool text_breaks(qn_sampler *s, int32_t token)
{
    qn_str text;
    bool hit = false;
    if (!s->dry.longest || s->vocab.text(s->vocab.user, token, &text) != QN_OK) return false;
    for (size_t i = 0; i < text.len; i++) hit |= qn_matcher_feed(&s->breakers, (uint8_t)text.ptr[i]) >= 0;
    return hit;
}

void qn_sampler_accept(qn_sampler *s, int32_t token)
{
    if (token < 0 || token >= s->vocab.n_vocab) return;
    if (s->past.window) qn_past_add(&s->past, (qn_past_token){ token, text_breaks(s, token) }, &s->no_memory);
    if (!s->count || s->no_memory) return;
    s->count[token]++;
    if (s->past.keeps_all) s->guess.token[s->guess.n++] = token;
    const size_t last_n = window_of(s->o.penalty_last_n);
    if (s->past.n > last_n) s->count[s->past.token[s->past.n - 1 - last_n].id]--;
}

/* ---- choosing ---- */

static qn_status add_bias(qn_sampler *s, qn_err *err)
{
    float *logit = qn_cands_edit(&s->cands);
    qn_cands *c = &s->cands;
    bool bans = false;
    for (int32_t k = 0; k < s->o.n_bias; k++) {
        int32_t lo = 0, hi = c->n; /* candidates are in order of id */
        while (lo < hi) {
            const int32_t mid = lo + (hi - lo) / 2;
            if (qn_cands_id(c, mid) < s->bias[k].id) lo = mid + 1;
            else hi = mid;
        }
        if (lo == c->n || qn_cands_id(c, lo) != s->bias[k].id) continue;
        const bool ban = isinf(s->bias[k].bias) || isinf(logit[lo]);
        logit[lo] = ban ? -INFINITY : qn_logit_bound((double)logit[lo] + (double)s->bias[k].bias);
        bans |= ban;
    }
    if (bans) qn_cands_drop_banned(c);
    return c->n ? QN_OK : qn_fail(err, QN_ERR_NUMERIC, "every token is banned: there is nothing to choose from");
}

static qn_status run_chain(qn_sampler *s, const float *logits, const qn_extremes *group, qn_err *err)
{
    QN_TRY(qn_cands_begin(&s->cands, logits, group, err));
    if (s->o.n_bias) QN_TRY(add_bias(s, err));
    for (int32_t i = 0; i < s->n_stages; i++) run_stage[s->stage[i]](s);
    return s->no_memory ? qn_fail(err, QN_ERR_NOMEM, "no memory for the tokens that penalties look back on") : QN_OK;
}

qn_status qn_sampler_weigh(qn_sampler *s, const float *logits, const qn_cands **out, qn_err *err)
{
    QN_TRY(run_chain(s, logits, NULL, err));
    if (is_greedy(&s->o)) qn_cands_keep_highest(&s->cands, 1);
    else if (s->o.mirostat) qn_cut_mirostat(&s->cands, s->mu);
    qn_cands_softmax(&s->cands);
    *out = &s->cands;
    return QN_OK;
}

/* @param end  out: where the chosen one's part of [0, 1) ends */
static int32_t draw(const qn_cands *c, double u, double *end)
{
    int32_t last = 0;
    double sum = 0;
    for (int32_t i = 0; i < c->n; i++) {
        if (c->p[i] == 0) continue;
        last = i;
        sum += c->p[i];
        if (u < sum) break;
    }
    *end = sum;
    return last; /* where rounding leaves the sum below u: the last that can be chosen */
}

/* Twice the distance to where a neighbour's part begins. Nothing lies beyond 0 and 1. */
static double sure_of(double u, double p, double end)
{
    const double begin = end - p, below = begin > 1e-9 ? u - begin : 1, above = end < 1 - 1e-9 ? end - u : 1;
    const double near = 2 * (below < above ? below : above);
    return near < 1 ? near : 1;
}

/* Surprise under the distribution before the cut, as in the paper; a move towards the target. */
static void pick_mirostat(qn_sampler *s, int32_t *token, double *sure)
{
    qn_cands *c = &s->cands;
    const qn_softmax whole = qn_cands_softmax(c);
    qn_cut_mirostat(c, s->mu);
    qn_cands_softmax(c);
    double end;
    const double u = qn_random_unit(&s->random);
    const int32_t i = draw(c, u, &end);
    const double surprise = ((double)whole.max + whole.log_sum - (double)c->logit[i]) * QN_LOG2_E;
    s->mu -= (double)s->o.mirostat_eta * (surprise - (double)s->o.mirostat_tau);
    *token = qn_cands_id(c, i);
    *sure = sure_of(u, c->p[i], end);
}

static void pick_drawn(qn_sampler *s, int32_t *token, double *sure)
{
    double end;
    qn_cands_softmax(&s->cands);
    const double u = qn_random_unit(&s->random);
    const int32_t i = draw(&s->cands, u, &end);
    *token = qn_cands_id(&s->cands, i);
    *sure = sure_of(u, s->cands.p[i], end);
}

qn_status qn_sampler_pick(qn_sampler *s, const float *logits, int32_t *token, qn_err *err)
{
    return qn_sampler_pick_grouped(s, logits, NULL, token, err);
}

qn_status qn_sampler_pick_grouped(qn_sampler *s, const float *logits, const qn_extremes *group, int32_t *token, qn_err *err)
{
    double sure;
    QN_TRY(run_chain(s, logits, group, err));
    if (is_greedy(&s->o)) *token = qn_cands_argmax(&s->cands);
    else if (s->o.mirostat) pick_mirostat(s, token, &sure);
    else pick_drawn(s, token, &sure);
    return QN_OK;
}

/* ---- guesses ---- */

void qn_sampler_guess_begin(qn_sampler *s)
{
    s->guess.random = s->random;
    s->guess.mu = s->mu;
    s->guess.n_past = s->past.n;
    s->guess.no_memory = s->no_memory;
    s->guess.n = 0;
    for (int32_t i = 0; i < s->breakers.n; i++) s->guess.breaker[i] = s->breakers.string[i].state;
    s->past.keeps_all = true;
}

void qn_sampler_guess_end(qn_sampler *s)
{
    const size_t last_n = window_of(s->o.penalty_last_n);
    for (int32_t i = s->guess.n - 1; i >= 0; i--) {
        const size_t n = s->guess.n_past + (size_t)i + 1; /* tokens when it was accepted */
        s->count[s->guess.token[i]]--;
        if (s->past.window && n > last_n) s->count[s->past.token[n - 1 - last_n].id]++;
    }
    s->random = s->guess.random;
    s->mu = s->guess.mu;
    s->past.n = s->guess.n_past;
    for (int32_t i = 0; i < s->breakers.n; i++) s->breakers.string[i].state = s->guess.breaker[i];
    s->past.keeps_all = false;
    s->no_memory = s->guess.no_memory;
}

qn_status qn_sampler_guess(qn_sampler *s, const float *logits, const qn_extremes *group, int32_t *token, double *sure, qn_err *err)
{
    QN_TRY(run_chain(s, logits, group, err));
    if (!is_greedy(&s->o)) {
        (s->o.mirostat ? pick_mirostat : pick_drawn)(s, token, sure);
        return QN_OK;
    }
    *token = qn_cands_argmax(&s->cands);
    *sure = tanh(0.5 * (double)qn_cands_lead(&s->cands));
    return QN_OK;
}

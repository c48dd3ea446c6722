/* One step of everything that runs: who joins, who gives way, what is evaluated, and what becomes of it. */
#include "src/base/pool.h"
#include "src/run/draft.h"
#include "src/run/scheduler.h"
#include "src/run/stats.h"

/* The least piece of a prompt: below this a step costs more than it brings. Of all prompts together, in a step that answers wait for: at 32
 * tokens a prompt is read within a tenth of the rate of 512, and an answer beside it waits a sixteenth of the time. */
enum { LEAST_PIECE = 16, BESIDE_ANSWERS = 32 };

static void remove_at(qn_choices *list, size_t i)
{
    list->n--;
    for (; i < list->n; i++) list->item[i] = list->item[i + 1];
}

static void drop_cancelled(qn_scheduler *s, qn_choices *list)
{
    for (size_t i = 0; i < list->n;) {
        qn_choice *c = list->item[i];
        if (!atomic_load(&c->request->cancel)) {
            i++;
            continue;
        }
        remove_at(list, i);
        qn_scheduler_end(s, c, QN_ERR_CANCELLED, NULL);
    }
}

/* ---- joining ---- */

/* Choices after the first begin where it has read the prompt. */
static bool must_wait(const qn_choice *c)
{
    const qn_choice *first = &c->request->choice[0];
    return c->i > 0 && !c->has_run && first->stream.read == 0 && !first->stream.ended;
}

/* Bring a choice's timeline to what is known of its text. @return blocks are free for all of it, and one more for each that runs */
static bool make_room(qn_scheduler *s, qn_choice *c)
{
    const qn_kv *first = c->request->choice[0].kv;
    if (c->i > 0 && !c->has_run && first) qn_kv_fork(c->kv, first);
    qn_stream_match(&c->stream);
    if (s->running.n == 0 || qn_kv_missing(c->kv, c->stream.n) + (int32_t)s->running.n + 1 <= 0) return true;
    (void)qn_kv_rewind(c->kv, 0);
    return false;
}

/* @return false: it stays where it is, and nobody behind it joins */
static bool admit(qn_scheduler *s, size_t i, qn_status *status, qn_err *err)
{
    qn_choice *c = s->waiting.item[i];
    *status = QN_OK;
    if (!c->kv) {
        *status = qn_kv_open(&c->kv, s->engine->kv_pool, err);
        c->stream.kv = c->kv;
        if (*status != QN_OK) return false;
    }
    if (!make_room(s, c)) return false;
    if (!c->has_run) c->stream.r.queue_seconds = qn_now() - c->stream.began;
    if (!qn_choices_add(&s->running, c)) {
        *status = qn_fail(err, QN_ERR_NOMEM, "no memory for one more request");
        return false;
    }
    c->has_run = true;
    remove_at(&s->waiting, i);
    return true;
}

static void admit_all(qn_scheduler *s)
{
    for (size_t i = 0; i < s->waiting.n && s->running.n < (size_t)s->engine->n_sessions;) {
        qn_err err = { 0 };
        qn_status status = QN_OK;
        if (must_wait(s->waiting.item[i])) {
            i++;
            continue;
        }
        pthread_mutex_lock(&s->engine->lock);
        const bool joins = admit(s, i, &status, &err);
        pthread_mutex_unlock(&s->engine->lock);
        if (joins) continue;
        if (status == QN_OK) return;
        qn_choice *c = s->waiting.item[i];
        remove_at(&s->waiting, i);
        qn_scheduler_end(s, c, status, &err);
    }
}

/* ---- what is evaluated ---- */

static bool reads_prompt(const qn_choice *c)
{
    return c->stream.n - qn_kv_position(c->kv) > 1;
}

/* The last of those that run gives its blocks away and waits again. @return false: nobody runs behind `c` */
static bool preempt_behind(qn_scheduler *s, const qn_choice *c)
{
    qn_choice *last = s->running.item[s->running.n - 1];
    if (last == c || last->in_step || !qn_choices_add(&s->waiting, last)) return false;
    s->running.n--;
    (void)qn_kv_rewind(last->kv, 0);
    last->stream.r.n_preempted++;
    last->stream.n_draft = 0;
    qn_stats_preempted(&s->engine->stats);
    return true;
}

/* Reserve what the part of a choice needs, at the cost of those behind it, then at its own. */
static bool reserve(qn_scheduler *s, qn_choice *c, const qn_step_part *part)
{
    while (!qn_kv_reserve(c->kv, qn_kv_position(c->kv) + part->n))
        if (!preempt_behind(s, c)) return false;
    return true;
}

typedef struct step_size {
    int32_t n_parts, n_tokens, n_outputs, n_drafts;
} step_size;

/* Add a choice's part of at most `budget` tokens. */
static void add_part(qn_scheduler *s, qn_choice *c, int32_t budget, step_size *size)
{
    if (c->stream.n_draft > QN_DRAFT_MAX - size->n_drafts) c->stream.n_draft = QN_DRAFT_MAX - size->n_drafts;
    qn_step_part part = qn_stream_ask(&c->stream, budget);
    if (c->stream.n_draft > 0 && qn_kv_missing(c->kv, qn_kv_position(c->kv) + part.n) > 0) { /* nobody gives blocks away for a draft */
        c->stream.n_draft = 0;
        part = qn_stream_ask(&c->stream, budget);
    }
    if (!reserve(s, c, &part)) {
        c->stream.n_asked = 0;
        return;
    }
    c->in_step = true;
    c->first_output = size->n_outputs;
    s->part[size->n_parts++] = part;
    size->n_tokens += part.n;
    size->n_outputs += part.n_outputs;
    size->n_drafts += c->stream.n_draft;
}

/* Answers go on first, a token each; prompts share what is left of the step evenly. Those that rank first are served first, so that blocks are
 * taken from those behind. */
static step_size plan_step(qn_scheduler *s)
{
    int32_t n_chunk = s->engine->n_chunk, n_reading = 0;
    step_size size = { 0 };
    for (size_t i = 0; i < s->running.n; i++) s->running.item[i]->in_step = false;
    for (size_t i = 0; i < s->running.n; i++) {
        qn_choice *c = s->running.item[i];
        n_reading += reads_prompt(c);
        if (!reads_prompt(c) && size.n_tokens < n_chunk) add_part(s, c, n_chunk - size.n_tokens, &size);
    }
    if (size.n_parts > 0 && n_chunk > size.n_tokens + BESIDE_ANSWERS) n_chunk = size.n_tokens + BESIDE_ANSWERS;
    for (size_t i = 0; i < s->running.n && size.n_tokens < n_chunk; i++) {
        qn_choice *c = s->running.item[i];
        if (c->in_step || !reads_prompt(c)) continue;
        const int32_t left = n_chunk - size.n_tokens, share = left / (n_reading > 0 ? n_reading : 1);
        add_part(s, c, share < LEAST_PIECE ? (left < LEAST_PIECE ? left : LEAST_PIECE) : share, &size);
        n_reading--;
    }
    return size;
}

typedef struct choosing {
    const qn_scheduler *s;
    bool has_extremes;
} choosing;

static void choose_part(void *arg, int32_t i_thread, int32_t n_threads)
{
    const choosing *k = arg;
    const qn_engine *e = k->s->engine;
    for (size_t i = (size_t)i_thread; i < k->s->running.n; i += (size_t)n_threads) {
        qn_choice *c = k->s->running.item[i];
        if (!c->in_step) continue;
        const qn_extremes *x = k->has_extremes ? e->exec.extremes + (int64_t)c->first_output * e->exec.n_groups : NULL;
        qn_stream_choose(&c->stream, e->logits + (int64_t)c->first_output * e->model->net.n_vocab, x);
    }
}

/* A step that nobody could take part in: the first of those that run cannot have what it needs. */
static void end_first(qn_scheduler *s)
{
    qn_err err = { 0 };
    if (s->running.n == 0) return;
    qn_choice *c = s->running.item[0];
    remove_at(&s->running, 0);
    qn_scheduler_end(s, c, qn_engine_pool_full(s->engine, &err), &err);
}

/* Note whose step it is, so that a cancel may stop it. NULL: it has ended. */
static void note_only(qn_scheduler *s, const qn_request *only)
{
    pthread_mutex_lock(&s->lock);
    s->only = only;
    atomic_store(&s->interrupts, s->stops || (only && atomic_load(&only->cancel)));
    pthread_mutex_unlock(&s->lock);
}

static const qn_request *only_request(const qn_scheduler *s)
{
    for (size_t i = 1; i < s->running.n; i++)
        if (s->running.item[i]->request != s->running.item[0]->request) return NULL;
    return s->running.item[0]->request;
}

/* @return false: nobody could take part */
static bool evaluate(qn_scheduler *s)
{
    qn_engine *e = s->engine;
    note_only(s, only_request(s));
    pthread_mutex_lock(&e->lock);
    for (size_t i = 0; i < s->running.n; i++) s->stream[i] = &s->running.item[i]->stream;
    qn_engine_draft(e, s->stream, (int32_t)s->running.n);
    const step_size size = plan_step(s);
    if (size.n_parts > 0 && qn_engine_step(e, s->part, size.n_parts, e->logits, &s->interrupts)) {
        choosing k = { s, size.n_outputs <= QN_OWN_ROWS };
        if (size.n_outputs > 0) qn_pool_run(e->pool, choose_part, &k);
        for (size_t i = 0; i < s->running.n; i++) {
            qn_choice *c = s->running.item[i];
            if (c->in_step) qn_stream_settle(&c->stream);
        }
    }
    pthread_mutex_unlock(&e->lock);
    note_only(s, NULL);
    if (size.n_parts > 0) qn_stats_step(&e->stats, size.n_parts, size.n_tokens);
    return size.n_parts > 0;
}

static void deliver(qn_scheduler *s)
{
    for (size_t i = 0; i < s->running.n;) {
        qn_choice *c = s->running.item[i];
        if (c->in_step) {
            qn_stats_tokens(&s->engine->stats, &c->stream);
            qn_stream_deliver(&c->stream);
        }
        if (!c->stream.ended) {
            i++;
            continue;
        }
        remove_at(&s->running, i);
        qn_scheduler_end(s, c, QN_OK, NULL);
    }
}

void qn_scheduler_step(qn_scheduler *s)
{
    drop_cancelled(s, &s->waiting);
    drop_cancelled(s, &s->running);
    admit_all(s);
    if (s->running.n == 0) return;
    if (!evaluate(s)) {
        end_first(s);
        return;
    }
    deliver(s);
}

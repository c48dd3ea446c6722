/* Requests as their caller sees them, and the thread that runs them. */
#include "src/base/mem.h"
#include "src/base/opts.h"
#include "src/base/pool.h"
#include "src/run/scheduler.h"
#include "src/run/stats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_CHOICES = 128 };

/* ---- the thread ---- */

/* A choice ranks before another: of a higher priority, or as high and earlier. */
static bool goes_before(const qn_choice *a, const qn_choice *b)
{
    const qn_request *p = a->request, *q = b->request;
    if (p->o.priority != q->o.priority) return p->o.priority > q->o.priority;
    return p->serial != q->serial ? p->serial < q->serial : a->i < b->i;
}

bool qn_choices_add(qn_choices *list, qn_choice *c)
{
    if (!qn_grow((void **)&list->item, &list->cap, list->n + 1, sizeof *list->item)) return false;
    size_t at = list->n++;
    for (; at > 0 && goes_before(c, list->item[at - 1]); at--) list->item[at] = list->item[at - 1];
    list->item[at] = c;
    return true;
}

/* With the lock held. @return the requests that have come */
static qn_request *take_inbox(qn_scheduler *s)
{
    qn_request *r = s->inbox;
    s->inbox = NULL;
    s->inbox_end = &s->inbox;
    return r;
}

static void add_requests(qn_scheduler *s, qn_request *r)
{
    const qn_err no_memory = { QN_ERR_NOMEM, "no memory for one more request" };
    for (qn_request *next; r; r = next) {
        next = r->next;
        for (int32_t i = 0, n = r->o.n_choices; i < n; i++)
            if (!qn_choices_add(&s->waiting, &r->choice[i])) qn_scheduler_end(s, &r->choice[i], QN_ERR_NOMEM, &no_memory);
    }
}

static void end_all(qn_scheduler *s, qn_choices *list)
{
    const qn_err err = { QN_ERR_CANCELLED, "the engine is closed" };
    while (list->n) qn_scheduler_end(s, list->item[--list->n], QN_ERR_CANCELLED, &err);
}

static void *run(void *arg)
{
    qn_scheduler *s = arg;
    for (bool stops = false; !stops;) {
        pthread_mutex_lock(&s->lock);
        while (!s->stops && !s->inbox && s->waiting.n + s->running.n == 0) pthread_cond_wait(&s->news, &s->lock);
        qn_request *r = take_inbox(s);
        stops = s->stops;
        pthread_mutex_unlock(&s->lock);
        add_requests(s, r);
        qn_stats_queue(&s->engine->stats, s->waiting.n, s->running.n);
        if (!stops) qn_scheduler_step(s);
    }
    end_all(s, &s->waiting);
    end_all(s, &s->running);
    return NULL;
}

static void free_request(qn_request *r)
{
    for (int32_t i = 0; i < r->o.n_choices && r->choice; i++) {
        qn_choice *c = &r->choice[i];
        qn_stream_close(&c->stream);
        qn_sampler_close(&c->sampler);
        qn_buf_free(&c->news);
    }
    free(r->choice);
    qn_buf_free(&r->told);
    free(r);
}

void qn_scheduler_end(qn_scheduler *s, qn_choice *c, qn_status status, const qn_err *err)
{
    qn_request *r = c->request;
    qn_err own = { 0 };
    if (err) own = *err;
    status = qn_stream_end(&c->stream, status, &own);
    if (c->is_text_lost && status == QN_OK) {
        c->stream.r.finish = QN_FINISH_ERROR;
        status = qn_fail(&own, QN_ERR_NOMEM, "no memory for the text of the answer");
    }
    c->stream.ended = true;
    if (c->kv) {
        pthread_mutex_lock(&s->engine->lock);
        qn_kv_close(&c->kv);
        pthread_mutex_unlock(&s->engine->lock);
    }
    qn_stats_ended(&s->engine->stats, &c->stream.r, c->has_run);
    qn_stats_queue(&s->engine->stats, s->waiting.n, s->running.n);
    if (r->o.on_end) r->o.on_end(r->o.user, c->i, &c->stream.r, status == QN_OK ? NULL : &own);
    pthread_mutex_lock(&s->lock);
    c->err = own;
    c->ended = true;
    const bool is_last = ++r->n_ended == r->o.n_choices, is_orphan = r->is_orphan;
    pthread_cond_broadcast(&s->news);
    pthread_mutex_unlock(&s->lock);
    if (is_last && is_orphan) free_request(r);
}

static void free_scheduler(qn_scheduler *s)
{
    if (!s) return;
    free(s->waiting.item);
    free(s->running.item);
    free(s->part);
    free(s->stream);
    free(s);
}

static qn_status open_scheduler(qn_engine *e, qn_err *err)
{
    qn_scheduler *s = qn_new(1, sizeof *s);
    pthread_condattr_t clock;
    if (s) s->part = qn_new((size_t)e->n_sessions, sizeof *s->part);
    if (s) s->stream = qn_new((size_t)e->n_sessions, sizeof *s->stream);
    if (!s || !s->part || !s->stream) {
        free_scheduler(s);
        return qn_fail(err, QN_ERR_NOMEM, "no memory for requests");
    }
    s->engine = e;
    s->inbox_end = &s->inbox;
    bool works = pthread_condattr_init(&clock) == 0 && pthread_condattr_setclock(&clock, CLOCK_MONOTONIC) == 0 &&
                 pthread_cond_init(&s->news, &clock) == 0 && pthread_mutex_init(&s->lock, NULL) == 0;
    works = works && pthread_create(&s->thread, NULL, run, s) == 0;
    if (works) e->scheduler = s;
    else free_scheduler(s);
    return works ? QN_OK : qn_fail(err, QN_ERR_NOMEM, "the system refused a thread for requests");
}

void qn_scheduler_close(qn_scheduler **scheduler)
{
    qn_scheduler *s = *scheduler;
    if (!s) return;
    pthread_mutex_lock(&s->lock);
    s->stops = true;
    atomic_store(&s->interrupts, true);
    pthread_cond_broadcast(&s->news);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->news);
    pthread_mutex_destroy(&s->lock);
    free_scheduler(s);
    *scheduler = NULL;
}

/* ---- callers ---- */

/* Text of a choice on its way to the caller's function, or kept for qn_request_next. */
static bool on_text(void *user, const char *text, size_t len)
{
    qn_choice *c = user;
    qn_request *r = c->request;
    if (r->o.on_text) return r->o.on_text(r->o.user, c->i, text, len);
    pthread_mutex_lock(&r->scheduler->lock);
    qn_buf_add(&c->news, text, len);
    if (c->news.failed) c->is_text_lost = true;
    const bool kept = !c->is_text_lost;
    pthread_cond_broadcast(&r->scheduler->news);
    pthread_mutex_unlock(&r->scheduler->lock);
    return kept;
}

static void on_token(void *user, int32_t id)
{
    qn_choice *c = user;
    if (c->request->o.on_token) c->request->o.on_token(c->request->o.user, c->i, id);
}

static qn_status open_choice(qn_request *r, int32_t i, const qn_request_opts *o, qn_err *err)
{
    qn_engine *e = r->scheduler->engine;
    qn_choice *c = &r->choice[i];
    qn_sample_opts sampling;
    qn_sample_opts_init(&sampling);
    if (o->sampling) QN_TRY(qn_opts_take(&sampling, sizeof sampling, o->sampling, "sampling", err));
    if (sampling.seed == QN_SEED_RANDOM && i > 0) sampling.seed = qn_sampler_seed(r->choice[0].sampler);
    if (sampling.seed != QN_SEED_RANDOM) sampling.seed += (uint64_t)i;
    c->request = r;
    c->i = i;
    QN_TRY(qn_sampler_open(&c->sampler, e->model, &sampling, err));
    const qn_generate_opts g = {
        .size = sizeof g, .max_tokens = o->max_tokens, .stop = o->stop, .n_stop = o->n_stop, .ignore_end = o->ignore_end, .special = o->special,
        .on_text = on_text, .on_token = on_token, .user = c,
    };
    return qn_stream_open(&c->stream, e, NULL, c->sampler, o->prompt, o->n_prompt, &g, err);
}

static qn_status open_request(qn_request *r, const qn_request_opts *o, qn_err *err)
{
    if (o->n_choices < 0 || o->n_choices > MOST_CHOICES)
        return qn_fail(err, QN_ERR_ARG, "%d choices; it must be 1 to %d", o->n_choices, MOST_CHOICES);
    const int32_t n = o->n_choices ? o->n_choices : 1;
    r->o = *o;
    r->o.n_choices = 0; /* as many as free_request finds open */
    r->choice = qn_new((size_t)n, sizeof *r->choice);
    if (!r->choice) return qn_fail(err, QN_ERR_NOMEM, "no memory for a request");
    for (int32_t i = 0; i < n; i++) {
        r->o.n_choices = i + 1;
        QN_TRY(open_choice(r, i, o, err));
    }
    return QN_OK;
}

static qn_status scheduler_of(qn_engine *e, qn_err *err)
{
    pthread_mutex_lock(&e->lock);
    const qn_status status = e->scheduler ? QN_OK : open_scheduler(e, err);
    pthread_mutex_unlock(&e->lock);
    return status;
}

qn_status qn_engine_submit(qn_engine *e, const qn_request_opts *opts, qn_request **out, qn_err *err)
{
    qn_request_opts o;
    *out = NULL;
    QN_TRY(qn_opts_take(&o, sizeof o, opts, "request", err));
    QN_TRY(scheduler_of(e, err));
    qn_request *r = qn_new(1, sizeof *r);
    if (!r) return qn_fail(err, QN_ERR_NOMEM, "no memory for a request");
    qn_scheduler *s = r->scheduler = e->scheduler;
    const qn_status status = open_request(r, &o, err);
    if (status != QN_OK) {
        free_request(r);
        return status;
    }
    *out = r;
    qn_stats_asked(&e->stats, r->o.n_choices);
    pthread_mutex_lock(&s->lock);
    r->serial = s->n_submitted++;
    *s->inbox_end = r;
    s->inbox_end = &r->next;
    pthread_cond_broadcast(&s->news);
    pthread_mutex_unlock(&s->lock);
    return QN_OK;
}

/* Wait with the lock held until something is told or the time is over. @return false: it is over */
static bool wait_news(qn_scheduler *s, double seconds, const struct timespec *until)
{
    if (seconds == 0) return false;
    if (seconds < 0) return pthread_cond_wait(&s->news, &s->lock) == 0;
    return pthread_cond_timedwait(&s->news, &s->lock, until) != ETIMEDOUT;
}

static struct timespec after(double seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    if (seconds > 1e9) seconds = 1e9;
    const double ns = (double)t.tv_nsec + (seconds > 0 ? seconds - (double)(time_t)seconds : 0) * 1e9;
    t.tv_sec += (seconds > 0 ? (time_t)seconds : 0) + (ns >= 1e9);
    t.tv_nsec = (long)(ns >= 1e9 ? ns - 1e9 : ns);
    return t;
}

/* A choice that has something to tell, or NULL. */
static qn_choice *has_news(qn_request *r)
{
    for (int32_t i = 0; i < r->o.n_choices; i++) {
        qn_choice *c = &r->choice[i];
        if (c->news.len || (c->ended && !c->is_end_told)) return c;
    }
    return NULL;
}

bool qn_request_next(qn_request *r, double seconds, qn_event *out)
{
    qn_scheduler *s = r->scheduler;
    const struct timespec until = after(seconds);
    *out = (qn_event){ .text = "" };
    pthread_mutex_lock(&s->lock);
    qn_choice *c = has_news(r);
    while (!c && r->n_ended < r->o.n_choices && wait_news(s, seconds, &until)) c = has_news(r);
    if (!c) c = has_news(r);
    if (c) {
        const qn_buf told = r->told;
        r->told = c->news;
        c->news = told; /* the two change places: no memory is needed to tell */
        c->news.len = 0;
        *out = (qn_event){ .i_choice = c->i, .text = r->told.len ? r->told.ptr : "", .len = r->told.len, .ended = c->ended };
        if (c->ended) {
            c->is_end_told = true;
            out->result = c->stream.r;
            out->err = c->err;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return c != NULL;
}

bool qn_request_wait(qn_request *r, double seconds)
{
    qn_scheduler *s = r->scheduler;
    const struct timespec until = after(seconds);
    pthread_mutex_lock(&s->lock);
    while (r->n_ended < r->o.n_choices && wait_news(s, seconds, &until)) continue;
    const bool ended = r->n_ended == r->o.n_choices;
    pthread_mutex_unlock(&s->lock);
    return ended;
}

/* A step that others share is taken to its end: they would lose it. */
void qn_request_cancel(qn_request *r)
{
    qn_scheduler *s = r->scheduler;
    pthread_mutex_lock(&s->lock);
    atomic_store(&r->cancel, true);
    if (s->only == r) atomic_store(&s->interrupts, true);
    pthread_mutex_unlock(&s->lock);
}

void qn_request_close(qn_request **request)
{
    qn_request *r = *request;
    if (!r) return;
    qn_scheduler *s = r->scheduler;
    qn_request_cancel(r);
    if (pthread_equal(pthread_self(), s->thread)) {
        *request = NULL;
        pthread_mutex_lock(&s->lock);
        r->is_orphan = true;
        pthread_mutex_unlock(&s->lock);
        return;
    }
    (void)qn_request_wait(r, -1);
    *request = NULL; /* callbacks may cancel by it up to here */
    free_request(r);
}

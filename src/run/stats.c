#include "src/run/stats.h"

#include "src/base/pool.h"

#include <math.h>

/* Two buckets an octave, from 2^-17 (8 us) to 2^14 (four hours, or the tokens of the longest step). */
enum { BUCKETS_AN_OCTAVE = 2, BUCKET_OF_ONE = 34 };

double qn_histogram_bound(int32_t i)
{
    return i >= QN_HISTOGRAM_BUCKETS - 1 ? INFINITY : exp2((double)(i - BUCKET_OF_ONE) / BUCKETS_AN_OCTAVE);
}

void qn_histogram_add(qn_histogram *h, double value)
{
    int32_t i = 0;
    if (!(value >= 0)) value = 0;
    if (value > 0) {
        const double at = ceil(log2(value) * BUCKETS_AN_OCTAVE) + BUCKET_OF_ONE;
        i = at < 0 ? 0 : at > QN_HISTOGRAM_BUCKETS - 1 ? QN_HISTOGRAM_BUCKETS - 1 : (int32_t)at;
        while (i > 0 && value <= qn_histogram_bound(i - 1)) i--; /* a logarithm's last bit */
        while (value > qn_histogram_bound(i)) i++;
    }
    h->n++;
    h->sum += value;
    h->bucket[i]++;
}

double qn_histogram_quantile(const qn_histogram *h, double q)
{
    double left = (q < 0 ? 0 : q > 1 ? 1 : q) * (double)h->n;
    int32_t i = 0, last = 0;
    if (h->n == 0) return 0;
    for (int32_t k = 0; k < QN_HISTOGRAM_BUCKETS; k++)
        if (h->bucket[k]) last = k;
    for (; i < last && left > (double)h->bucket[i]; i++) left -= (double)h->bucket[i];
    while (!h->bucket[i]) i++; /* q is 0: the first there is */
    const double low = i > 0 ? qn_histogram_bound(i - 1) : 0, high = qn_histogram_bound(i);
    return isinf(high) ? low : low + (high - low) * left / (double)h->bucket[i];
}

qn_status qn_stats_open(qn_stats *s, qn_err *err)
{
    s->is_open = pthread_mutex_init(&s->lock, NULL) == 0;
    return s->is_open ? QN_OK : qn_fail(err, QN_ERR_NOMEM, "the system has no lock left for an engine");
}

void qn_stats_close(qn_stats *s)
{
    if (s->is_open) pthread_mutex_destroy(&s->lock);
    s->is_open = false;
}

void qn_stats_asked(qn_stats *s, int32_t n)
{
    pthread_mutex_lock(&s->lock);
    s->total.n_requests += (uint64_t)n;
    pthread_mutex_unlock(&s->lock);
}

void qn_stats_queue(qn_stats *s, size_t n_waiting, size_t n_running)
{
    pthread_mutex_lock(&s->lock);
    s->total.n_waiting = (int32_t)n_waiting;
    s->total.n_running = (int32_t)n_running;
    pthread_mutex_unlock(&s->lock);
}

void qn_stats_preempted(qn_stats *s)
{
    pthread_mutex_lock(&s->lock);
    s->total.n_preempted++;
    pthread_mutex_unlock(&s->lock);
}

void qn_stats_step(qn_stats *s, int32_t n_answers, int32_t n_tokens)
{
    pthread_mutex_lock(&s->lock);
    s->total.n_steps++;
    qn_histogram_add(&s->total.step_answers, n_answers);
    qn_histogram_add(&s->total.step_tokens, n_tokens);
    pthread_mutex_unlock(&s->lock);
}

/* Tokens that came in one step share its time evenly. */
void qn_stats_tokens(qn_stats *s, qn_stream *stream)
{
    const double now = qn_now();
    const int32_t n_new = stream->r.n_generated - stream->n_timed;
    if (n_new == 0) return;
    pthread_mutex_lock(&s->lock);
    if (stream->n_timed == 0) qn_histogram_add(&s->total.first_token_seconds, stream->r.first_token_seconds);
    else
        for (int32_t i = 0; i < n_new; i++) qn_histogram_add(&s->total.token_seconds, (now - stream->timed) / n_new);
    pthread_mutex_unlock(&s->lock);
    if (stream->n_timed > 0 && now - stream->timed > stream->r.slowest_seconds) stream->r.slowest_seconds = now - stream->timed;
    stream->n_timed = stream->r.n_generated;
    stream->timed = now;
}

void qn_stats_ended(qn_stats *s, const qn_generate_result *r, bool was_queued)
{
    pthread_mutex_lock(&s->lock);
    qn_engine_stats *t = &s->total;
    t->n_ended++;
    t->n_prompt += (uint64_t)r->n_prompt;
    t->n_cached += (uint64_t)r->n_cached;
    t->n_generated += (uint64_t)r->n_generated;
    t->n_drafted += (uint64_t)r->n_drafted;
    t->n_accepted += (uint64_t)r->n_accepted;
    if (was_queued) qn_histogram_add(&t->queue_seconds, r->queue_seconds);
    pthread_mutex_unlock(&s->lock);
}

void qn_engine_get_stats(qn_engine *e, qn_engine_stats *out)
{
    qn_kv_pool_info info;
    pthread_mutex_lock(&e->lock);
    qn_kv_pool_get_info(e->kv_pool, &info);
    pthread_mutex_unlock(&e->lock);
    pthread_mutex_lock(&e->stats.lock);
    *out = e->stats.total;
    pthread_mutex_unlock(&e->stats.lock);
    out->n_blocks = info.n_blocks;
    out->n_blocks_free = info.n_free;
    out->n_blocks_idle = info.n_idle;
}

/* Requests side by side: each text is that of a run by itself, whatever runs beside it, is cancelled, preempted, forked or found in the cache;
 * and no block is lost. */
#include "src/run/engine.h"
#include "src/sample/sampler.h"
#include "tests/common/tiny_model.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { CTX = 192, MOST_PROMPT = 90, MOST_NEW = 40, MOST_CHOICES = 3, MOST_TEXT = 4096 };

static char path[64];
static const char *const archs[] = { "llama", "gemma3" }; /* one with windows */

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

typedef struct job {
    int32_t prompt[MOST_PROMPT], n_prompt, n_new, n_choices, priority;
    float temperature;
    uint64_t seed;
    int32_t cancel_after; /* tokens of any choice; 0: never */
    qn_request *request;
    /* heard */
    int32_t id[MOST_CHOICES][MOST_NEW], n_ids[MOST_CHOICES], n_ends[MOST_CHOICES];
    qn_generate_result result[MOST_CHOICES];
    char text[MOST_CHOICES][MOST_TEXT];
    size_t n_text[MOST_CHOICES];
} job;

/* Prompts share beginnings now and then. */
static void make_job(job *j, uint32_t *seed)
{
    memset(j, 0, sizeof *j);
    j->n_prompt = 1 + (int32_t)(next(seed) % MOST_PROMPT);
    uint32_t own = next(seed) % 4 ? next(seed) : 7;
    for (int32_t i = 0; i < j->n_prompt; i++) j->prompt[i] = (int32_t)(next(&own) % TINY_VOCAB);
    j->n_new = 1 + (int32_t)(next(seed) % MOST_NEW);
    j->n_choices = next(seed) % 4 ? 1 : 1 + (int32_t)(next(seed) % MOST_CHOICES);
    j->priority = (int32_t)(next(seed) % 3);
    j->temperature = next(seed) % 2 ? 0.0f : 1.5f;
    j->seed = next(seed);
    j->cancel_after = next(seed) % 5 ? 0 : 1 + (int32_t)(next(seed) % MOST_NEW);
}

static qn_sample_opts sampling_of(const job *j)
{
    qn_sample_opts o;
    qn_sample_opts_init(&o);
    o.temperature = j->temperature;
    o.seed = j->seed;
    return o;
}

static bool on_text(void *user, int32_t i, const char *text, size_t len)
{
    job *j = user;
    if (j->n_text[i] + len > MOST_TEXT) return false;
    memcpy(j->text[i] + j->n_text[i], text, len);
    j->n_text[i] += len;
    return true;
}

static void on_token(void *user, int32_t i, int32_t id)
{
    job *j = user;
    j->id[i][j->n_ids[i]++] = id;
    if (j->cancel_after && j->n_ids[i] >= j->cancel_after) qn_request_cancel(j->request);
}

static void on_end(void *user, int32_t i, const qn_generate_result *r, const qn_err *err)
{
    job *j = user;
    if (err) fprintf(stderr, "%s\n", err->text);
    j->n_ends[i]++;
    j->result[i] = *r;
}

static void submit(qn_engine *e, job *j, bool hears)
{
    qn_err err = { 0 };
    const qn_sample_opts sampling = sampling_of(j);
    qn_request_opts o = {
        .size = sizeof o, .prompt = j->prompt, .n_prompt = j->n_prompt, .sampling = &sampling, .max_tokens = j->n_new, .ignore_end = true,
        .n_choices = j->n_choices, .priority = j->priority, .user = j,
    };
    if (hears) {
        o.on_text = on_text;
        o.on_token = on_token;
        o.on_end = on_end;
    }
    if (qn_engine_submit(e, &o, &j->request, &err) != QN_OK) fail_msg("%s", err.text);
}

typedef struct solo {
    int32_t id[MOST_NEW], n;
    char text[MOST_TEXT];
    size_t n_text;
} solo;

static bool solo_text(void *user, const char *text, size_t len)
{
    solo *s = user;
    memcpy(s->text + s->n_text, text, len);
    s->n_text += len;
    return true;
}

static void solo_token(void *user, int32_t id)
{
    solo *s = user;
    s->id[s->n++] = id;
}

/* The same by itself, in a session that knows nothing. */
static void run_alone(const qn_model *m, const job *j, int32_t i_choice, solo *out)
{
    qn_engine *e = NULL;
    qn_session *s = NULL;
    qn_sampler *sampler = NULL;
    qn_sample_opts so = sampling_of(j);
    so.seed += (uint64_t)i_choice;
    memset(out, 0, sizeof *out);
    const qn_engine_opts o = { .size = sizeof o, .n_threads = 1, .n_ctx = CTX, .n_chunk = 512 };
    const qn_generate_opts g = { .size = sizeof g, .max_tokens = j->n_new, .ignore_end = true, .on_text = solo_text, .on_token = solo_token, .user = out };
    assert_int_equal(qn_engine_open(&e, m, &o, NULL), QN_OK);
    assert_int_equal(qn_session_open(&s, e, NULL), QN_OK);
    assert_int_equal(qn_sampler_open(&sampler, m, &so, NULL), QN_OK);
    assert_int_equal(qn_session_generate(s, j->prompt, j->n_prompt, sampler, &g, NULL, NULL), QN_OK);
    qn_sampler_close(&sampler);
    qn_session_close(&s);
    qn_engine_close(&e);
}

static void check_job(const qn_model *m, const job *j)
{
    for (int32_t i = 0; i < j->n_choices; i++) {
        solo alone;
        run_alone(m, j, i, &alone);
        const int32_t n = j->n_ids[i];
        assert_int_equal(j->n_ends[i], 1);
        assert_true(j->result[i].finish != QN_FINISH_ERROR);
        if (!j->cancel_after) assert_int_equal(n, alone.n);
        assert_true(n <= alone.n && !memcmp(j->id[i], alone.id, (size_t)n * sizeof *alone.id));
        if (!j->cancel_after) assert_int_equal(j->n_text[i], alone.n_text);
        if (n == alone.n) assert_memory_equal(j->text[i], alone.text, alone.n_text);
    }
}

static qn_model *open_model(const char *arch)
{
    qn_model *m = NULL;
    qn_err err = { 0 };
    assert_true(tiny_model_write(path, arch, 1, 3));
    if (qn_model_open(&m, path, NULL, &err) != QN_OK) fail_msg("%s", err.text);
    return m;
}

static qn_engine *open_engine(const qn_model *m, int32_t n_sessions, int32_t n_chunk, double n_contexts)
{
    qn_engine *e = NULL;
    qn_err err = { 0 };
    qn_memory_plan plan;
    qn_engine_opts o = { .size = sizeof o, .n_threads = 2, .n_ctx = CTX, .n_chunk = n_chunk };
    assert_int_equal(qn_memory_estimate(qn_model_file(m), &o, &plan, NULL), QN_OK);
    o.n_sessions = n_sessions;
    o.kv_memory = (uint64_t)(n_contexts * (double)plan.kv_bytes + 1);
    if (qn_engine_open(&e, m, &o, &err) != QN_OK) fail_msg("%s", err.text);
    return e;
}

static void check_blocks(qn_engine *e)
{
    qn_engine_stats st;
    qn_engine_get_stats(e, &st);
    assert_int_equal(st.n_blocks_free + st.n_blocks_idle, st.n_blocks);
    assert_int_equal(st.n_requests, st.n_ended);
}

/* Many at once, with room for few: they wait, give way, are cancelled in the middle. */
static void mixed(void **state)
{
    (void)state;
    enum { N = 24 };
    static job jobs[N];
    static const struct {
        int32_t n_sessions, n_chunk;
        double n_contexts;
    } ways[] = { { 4, 64, 4 }, { 8, 33, 1.5 }, { 3, 16, 1 }, { 1, 512, 1 } };
    for (size_t a = 0; a < sizeof archs / sizeof *archs; a++) {
        qn_model *m = open_model(archs[a]);
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            qn_engine *e = open_engine(m, ways[w].n_sessions, ways[w].n_chunk, ways[w].n_contexts);
            uint32_t seed = (uint32_t)(11 * w + a);
            for (int32_t i = 0; i < N; i++) {
                make_job(&jobs[i], &seed);
                submit(e, &jobs[i], true);
            }
            for (int32_t i = 0; i < N; i++) {
                assert_true(qn_request_wait(jobs[i].request, 60));
                qn_request_close(&jobs[i].request);
            }
            check_blocks(e);
            qn_engine_close(&e);
            for (int32_t i = 0; i < N; i++) check_job(m, &jobs[i]);
        }
        qn_model_close(&m);
    }
}

/* The pool holds a fraction of what the requests come to: some must give way, and say so. */
static void preempted(void **state)
{
    (void)state;
    enum { N = 6 };
    static job jobs[N];
    uint32_t seed = 5;
    qn_model *m = open_model("llama");
    qn_engine *e = open_engine(m, N, 64, 1.2);
    for (int32_t i = 0; i < N; i++) {
        make_job(&jobs[i], &seed);
        jobs[i].n_prompt = 20;
        jobs[i].n_new = MOST_NEW;
        jobs[i].n_choices = 1;
        jobs[i].cancel_after = 0;
        for (int32_t k = 0; k < 20; k++) jobs[i].prompt[k] = (int32_t)(next(&seed) % TINY_VOCAB);
        submit(e, &jobs[i], true);
    }
    for (int32_t i = 0; i < N; i++) {
        assert_true(qn_request_wait(jobs[i].request, 60));
        qn_request_close(&jobs[i].request);
    }
    check_blocks(e);
    int32_t n_preempted = 0;
    for (int32_t i = 0; i < N; i++) {
        check_job(m, &jobs[i]);
        n_preempted += jobs[i].result[0].n_preempted;
    }
    assert_true(n_preempted > 0);
    qn_engine_close(&e);
    qn_model_close(&m);
}

/* The same prompt again is found, and its text is the same. */
static void cached(void **state)
{
    (void)state;
    for (size_t a = 0; a < sizeof archs / sizeof *archs; a++) {
        qn_model *m = open_model(archs[a]);
        qn_engine *e = open_engine(m, 2, 64, 4);
        job first, second;
        uint32_t seed = 3;
        make_job(&first, &seed);
        first.n_prompt = MOST_PROMPT;
        for (int32_t i = 0; i < MOST_PROMPT; i++) first.prompt[i] = (int32_t)(next(&seed) % TINY_VOCAB);
        first.cancel_after = 0;
        first.n_choices = 1;
        second = first;
        submit(e, &first, true);
        assert_true(qn_request_wait(first.request, 60));
        qn_request_close(&first.request);
        submit(e, &second, true);
        assert_true(qn_request_wait(second.request, 60));
        qn_request_close(&second.request);
        assert_int_equal(first.result[0].n_cached, 0);
        assert_int_equal(second.result[0].n_cached, (MOST_PROMPT - 1) / 16 * 16);
        assert_int_equal(second.n_ids[0], first.n_ids[0]);
        assert_memory_equal(second.id[0], first.id[0], sizeof first.id[0]);
        qn_engine_close(&e);
        qn_model_close(&m);
    }
}

/* Without functions of the caller's: news are asked for, and say the same. */
static void polled(void **state)
{
    (void)state;
    qn_model *m = open_model("llama");
    qn_engine *e = open_engine(m, 3, 64, 3);
    job j;
    uint32_t seed = 9;
    make_job(&j, &seed);
    j.n_choices = 3;
    j.cancel_after = 0;
    submit(e, &j, false);
    qn_event ev;
    int32_t n_ended = 0;
    while (qn_request_next(j.request, -1, &ev)) {
        (void)on_text(&j, ev.i_choice, ev.text, ev.len);
        n_ended += ev.ended;
        if (ev.ended) assert_int_equal(ev.result.n_generated, j.n_new);
    }
    assert_int_equal(n_ended, 3);
    assert_false(qn_request_next(j.request, 0, &ev));
    for (int32_t i = 0; i < 3; i++) {
        solo alone;
        run_alone(m, &j, i, &alone);
        assert_int_equal(j.n_text[i], alone.n_text);
        assert_memory_equal(j.text[i], alone.text, alone.n_text);
    }
    qn_request_close(&j.request);
    qn_engine_close(&e);
    qn_model_close(&m);
}

typedef struct chain {
    qn_engine *engine;
    int32_t prompt[4];
    int32_t n_left;
    qn_request *request;
    pthread_mutex_t lock;
    pthread_cond_t done;
} chain;

static void chain_end(void *user, int32_t i, const qn_generate_result *r, const qn_err *err)
{
    chain *c = user;
    (void)i, (void)r, (void)err;
    qn_request_close(&c->request); /* in its own call */
    pthread_mutex_lock(&c->lock);
    const int32_t left = --c->n_left;
    if (left == 0) pthread_cond_signal(&c->done);
    pthread_mutex_unlock(&c->lock);
    const qn_request_opts o = { .size = sizeof o, .prompt = c->prompt, .n_prompt = 4, .max_tokens = 2, .on_end = chain_end, .user = c };
    if (left > 0) assert_int_equal(qn_engine_submit(c->engine, &o, &c->request, NULL), QN_OK);
}

/* A request closes itself and submits the next one. */
static void from_callbacks(void **state)
{
    (void)state;
    qn_model *m = open_model("llama");
    chain c = { .engine = open_engine(m, 2, 64, 2), .prompt = { 1, 2, 3, 4 }, .n_left = 5 };
    pthread_mutex_init(&c.lock, NULL);
    pthread_cond_init(&c.done, NULL);
    const qn_request_opts o = { .size = sizeof o, .prompt = c.prompt, .n_prompt = 4, .max_tokens = 2, .on_end = chain_end, .user = &c };
    pthread_mutex_lock(&c.lock);
    assert_int_equal(qn_engine_submit(c.engine, &o, &c.request, NULL), QN_OK);
    while (c.n_left > 0) pthread_cond_wait(&c.done, &c.lock);
    pthread_mutex_unlock(&c.lock);
    qn_engine_close(&c.engine);
    qn_model_close(&m);
}

static void refused(void **state)
{
    (void)state;
    qn_model *m = open_model("llama");
    qn_engine *e = open_engine(m, 2, 64, 2);
    qn_request *r = NULL;
    qn_err err = { 0 };
    int32_t prompt[CTX + 1] = { 0 };
    qn_request_opts o = { .size = sizeof o, .prompt = prompt, .n_prompt = CTX + 1 };
    assert_int_equal(qn_engine_submit(e, &o, &r, &err), QN_ERR_CTX_FULL);
    o.n_prompt = 0;
    assert_int_equal(qn_engine_submit(e, &o, &r, &err), QN_ERR_ARG);
    o.n_prompt = 1;
    prompt[0] = TINY_VOCAB;
    assert_int_equal(qn_engine_submit(e, &o, &r, &err), QN_ERR_ARG);
    prompt[0] = 0;
    o.n_choices = 1000;
    assert_int_equal(qn_engine_submit(e, &o, &r, &err), QN_ERR_ARG);
    o.n_choices = 2;
    const qn_sample_opts bad = { .size = sizeof bad, .top_p = 7 };
    o.sampling = &bad;
    assert_int_equal(qn_engine_submit(e, &o, &r, &err), QN_ERR_ARG);
    assert_null(r);
    check_blocks(e);
    qn_engine_close(&e);
    const qn_engine_opts few = { .size = sizeof few, .n_ctx = CTX, .kv_memory = 1000 };
    assert_int_equal(qn_engine_open(&e, m, &few, &err), QN_ERR_ARG);
    assert_non_null(strstr(err.text, "positions fit"));
    qn_model_close(&m);
}

/* The engine closes under requests: they end as cancelled. */
static void closed_engine(void **state)
{
    (void)state;
    qn_model *m = open_model("llama");
    qn_engine *e = open_engine(m, 2, 64, 2);
    static job jobs[4];
    uint32_t seed = 4;
    for (int32_t i = 0; i < 4; i++) {
        make_job(&jobs[i], &seed);
        submit(e, &jobs[i], true);
    }
    for (int32_t i = 0; i < 4; i++) qn_request_close(&jobs[i].request);
    check_blocks(e);
    qn_engine_close(&e);
    for (int32_t i = 0; i < 4; i++)
        for (int32_t k = 0; k < jobs[i].n_choices; k++) assert_int_equal(jobs[i].n_ends[k], 1);
    qn_model_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixed),   cmocka_unit_test(preempted),      cmocka_unit_test(cached),        cmocka_unit_test(polled),
        cmocka_unit_test(from_callbacks), cmocka_unit_test(refused), cmocka_unit_test(closed_engine),
    };
    snprintf(path, sizeof path, "/tmp/quern-requests-%d.gguf", (int)getpid());
    const int n = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return n;
}

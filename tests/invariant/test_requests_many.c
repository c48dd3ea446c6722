/* Ten thousand requests of several threads, of random lengths and numbers of choices, cancelled, closed, polled, with allocations that fail: each text
 * is that of a run by itself, or the beginning of it where the request did not come to its end, and no block is lost. */
#include "src/run/engine.h"
#include "tests/common/fault.h"
#include "tests/common/tiny_model.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { N_KINDS = 48, N_CALLERS = 3, WINDOW = 10, CTX = 64, MOST_PROMPT = 40, MOST_NEW = 20, MOST_CHOICES = 3, MOST_TEXT = 512 };

static char path[64];

typedef struct text {
    char byte[MOST_TEXT];
    size_t n;
} text;

/* What is asked for, over and over, and what must be told. */
typedef struct kind {
    int32_t prompt[MOST_PROMPT], n_prompt, n_new;
    qn_sample_opts sampling;
    text want[MOST_CHOICES];
} kind;

/* A request under way. */
typedef struct call {
    const kind *kind;
    qn_request *request;
    int32_t n_choices, cancel_after; /* tokens; 0: never                                     */
    bool is_polled;
    int32_t n_tokens;
    text got[MOST_CHOICES];
    int32_t n_ends[MOST_CHOICES];
    qn_finish finish[MOST_CHOICES];
    qn_err err;
} call;

typedef struct caller {
    qn_engine *engine;
    const kind *kinds;
    uint32_t seed;
    int32_t n_calls;
    call slot[WINDOW];
    int32_t n_refused, n_whole, n_cut, n_failed;
    char wrong[600];         /* what was not as it must be: cmocka's own checks are for its thread alone */
} caller;

static uint32_t draw(uint32_t *seed, uint32_t n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

static bool add_text(void *user, const char *s, size_t len)
{
    text *t = user;
    if (t->n + len > MOST_TEXT) return false;
    memcpy(t->byte + t->n, s, len);
    t->n += len;
    return true;
}

/* ---- alone ---- */

static void run_alone(const qn_model *m, kind *k, int32_t i)
{
    qn_engine *e = NULL;
    qn_session *s = NULL;
    qn_sampler *sampler = NULL;
    qn_sample_opts sampling = k->sampling;
    sampling.seed += (uint64_t)i;
    const qn_engine_opts o = { .size = sizeof o, .n_threads = 1, .n_ctx = CTX };
    const qn_generate_opts g = { .size = sizeof g, .max_tokens = k->n_new, .ignore_end = true, .on_text = add_text, .user = &k->want[i] };
    assert_int_equal(qn_engine_open(&e, m, &o, NULL), QN_OK);
    assert_int_equal(qn_session_open(&s, e, NULL), QN_OK);
    assert_int_equal(qn_sampler_open(&sampler, m, &sampling, NULL), QN_OK);
    assert_int_equal(qn_session_generate(s, k->prompt, k->n_prompt, sampler, &g, NULL, NULL), QN_OK);
    qn_sampler_close(&sampler);
    qn_session_close(&s);
    qn_engine_close(&e);
}

/* Half of the prompts begin alike. */
static void make_kind(const qn_model *m, kind *k, uint32_t *seed)
{
    memset(k, 0, sizeof *k);
    uint32_t own = draw(seed, 2) ? 7 : *seed;
    k->n_prompt = 1 + (int32_t)draw(seed, MOST_PROMPT);
    k->n_new = 1 + (int32_t)draw(seed, MOST_NEW);
    for (int32_t i = 0; i < k->n_prompt; i++) k->prompt[i] = (int32_t)draw(&own, TINY_VOCAB);
    qn_sample_opts_init(&k->sampling);
    k->sampling.temperature = draw(seed, 2) ? 0.0f : 1.5f;
    k->sampling.seed = draw(seed, 1000);
    for (int32_t i = 0; i < MOST_CHOICES; i++) run_alone(m, k, i);
}

/* ---- in the crowd ---- */

static bool on_text(void *user, int32_t i, const char *s, size_t len)
{
    return add_text(&((call *)user)->got[i], s, len);
}

static void on_token(void *user, int32_t i, int32_t id)
{
    call *c = user;
    (void)i, (void)id;
    if (++c->n_tokens == c->cancel_after) qn_request_cancel(c->request);
}

static void note_end(call *c, int32_t i, qn_finish finish, const qn_err *err)
{
    c->n_ends[i]++;
    c->finish[i] = finish;
    if (finish == QN_FINISH_ERROR) c->err = *err;
}

static void on_end(void *user, int32_t i, const qn_generate_result *r, const qn_err *err)
{
    note_end(user, i, r->finish, err);
}

static void poll(call *c, double seconds)
{
    for (qn_event ev; qn_request_next(c->request, seconds, &ev);) {
        (void)add_text(&c->got[ev.i_choice], ev.text, ev.len);
        if (ev.ended) note_end(c, ev.i_choice, ev.result.finish, &ev.err);
    }
}

/* A text that was cut off ends with U+FFFD where its last character was not complete. */
static void drop_replaced(text *t)
{
    while (t->n >= 3 && !memcmp(t->byte + t->n - 3, "\xef\xbf\xbd", 3)) t->n -= 3;
}

static void check_call(caller *x, call *c)
{
    for (int32_t i = 0; i < c->n_choices; i++) {
        text *got = &c->got[i];
        const text *want = &c->kind->want[i];
        const bool whole = c->finish[i] == QN_FINISH_LENGTH;
        if (!whole) drop_replaced(got);
        if (c->n_ends[i] != 1) snprintf(x->wrong, sizeof x->wrong, "choice %d ended %d times", i, c->n_ends[i]);
        if (got->n > want->n || memcmp(got->byte, want->byte, got->n) != 0)
            snprintf(x->wrong, sizeof x->wrong, "another text than alone: %.*s, not %.*s; finish %d", (int)got->n, got->byte, (int)want->n, want->byte,
                     (int)c->finish[i]);
        if (whole && got->n != want->n) snprintf(x->wrong, sizeof x->wrong, "%zu bytes of %zu", got->n, want->n);
        if (c->finish[i] == QN_FINISH_ERROR && c->err.status != QN_ERR_NOMEM) snprintf(x->wrong, sizeof x->wrong, "%s", c->err.text);
        x->n_whole += whole;
        x->n_cut += c->finish[i] == QN_FINISH_CANCELLED;
        x->n_failed += c->finish[i] == QN_FINISH_ERROR;
    }
}

static void end_call(caller *x, call *c)
{
    if (!c->request) return;
    const uint32_t how = draw(&x->seed, 8);
    if (how == 0) qn_request_cancel(c->request);
    if (c->is_polled) poll(c, -1);
    else if (how > 1) (void)qn_request_wait(c->request, -1);
    qn_request_close(&c->request);
    check_call(x, c);
}

static void begin_call(caller *x, call *c)
{
    memset(c, 0, sizeof *c);
    c->kind = &x->kinds[draw(&x->seed, N_KINDS)];
    c->n_choices = draw(&x->seed, 4) ? 1 : 1 + (int32_t)draw(&x->seed, MOST_CHOICES);
    c->is_polled = draw(&x->seed, 3) == 0;
    c->cancel_after = c->is_polled || draw(&x->seed, 6) ? 0 : 1 + (int32_t)draw(&x->seed, MOST_NEW);
    qn_request_opts o = {
        .size = sizeof o, .prompt = c->kind->prompt, .n_prompt = c->kind->n_prompt, .sampling = &c->kind->sampling, .max_tokens = c->kind->n_new,
        .ignore_end = true, .n_choices = c->n_choices, .priority = (int32_t)draw(&x->seed, 3), .user = c,
    };
    if (!c->is_polled) {
        o.on_text = on_text;
        o.on_token = on_token;
        o.on_end = on_end;
    }
    qn_err err = { 0 };
    if (draw(&x->seed, 12) == 0) test_fail_alloc_at(1 + (long)draw(&x->seed, 30)); /* of whichever thread */
    if (qn_engine_submit(x->engine, &o, &c->request, &err) == QN_OK) return;
    x->n_refused++;
    if (err.status != QN_ERR_NOMEM) snprintf(x->wrong, sizeof x->wrong, "%s", err.text);
}

static void *call_often(void *arg)
{
    caller *x = arg;
    for (int32_t n = 0; n < x->n_calls && !x->wrong[0]; n++) {
        call *c = &x->slot[draw(&x->seed, WINDOW)];
        if (c->request && c->is_polled && draw(&x->seed, 2)) poll(c, 0);
        end_call(x, c);
        begin_call(x, c);
    }
    for (int32_t i = 0; i < WINDOW; i++) end_call(x, &x->slot[i]);
    return NULL;
}

static void check_blocks(qn_engine *e)
{
    qn_engine_stats st;
    qn_engine_get_stats(e, &st);
    assert_int_equal(st.n_blocks_free + st.n_blocks_idle, st.n_blocks);
    assert_int_equal(st.n_requests, st.n_ended);
    assert_int_equal(st.n_running + st.n_waiting, 0);
    assert_true(st.n_preempted > 0 && st.n_cached > 0);
}

static void crowd(const char *arch, int32_t n_requests, int32_t n_threads)
{
    static kind kinds[N_KINDS];
    static caller callers[N_CALLERS];
    qn_model *m = NULL;
    qn_engine *e = NULL;
    qn_memory_plan plan;
    uint32_t seed = 1;
    assert_true(tiny_model_write(path, arch, 1, 3));
    assert_int_equal(qn_model_open(&m, path, NULL, NULL), QN_OK);
    for (int32_t i = 0; i < N_KINDS; i++) make_kind(m, &kinds[i], &seed);
    qn_engine_opts o = { .size = sizeof o, .n_threads = n_threads, .n_ctx = CTX, .n_chunk = 32, .n_sessions = 8 };
    assert_int_equal(qn_memory_estimate(qn_model_file(m), &(qn_engine_opts){ .size = sizeof o, .n_ctx = CTX, .n_chunk = 32 }, &plan, NULL), QN_OK);
    o.kv_memory = 3 * plan.kv_bytes;
    assert_int_equal(qn_engine_open(&e, m, &o, NULL), QN_OK);
    pthread_t thread[N_CALLERS];
    for (int32_t i = 0; i < N_CALLERS; i++) {
        callers[i] = (caller){ .engine = e, .kinds = kinds, .seed = (uint32_t)i, .n_calls = n_requests / N_CALLERS };
        assert_int_equal(pthread_create(&thread[i], NULL, call_often, &callers[i]), 0);
    }
    caller all = { 0 };
    for (int32_t i = 0; i < N_CALLERS; i++) {
        pthread_join(thread[i], NULL);
        if (callers[i].wrong[0]) fail_msg("%s", callers[i].wrong);
        all.n_whole += callers[i].n_whole;
        all.n_cut += callers[i].n_cut;
        all.n_failed += callers[i].n_failed;
        all.n_refused += callers[i].n_refused;
    }
    test_fail_alloc_at(0);
    printf("%s: %d whole, %d cancelled, %d failed, %d refused\n", arch, all.n_whole, all.n_cut, all.n_failed, all.n_refused);
    assert_true(all.n_whole > n_requests / 2 && all.n_cut > n_requests / 20 && all.n_failed > 0 && all.n_refused > 0);
    check_blocks(e);
    qn_engine_close(&e);
    qn_model_close(&m);
}

static void all_positions(void **state)
{
    (void)state;
    crowd("llama", 8000, 1); /* where the machine has other work, each barrier of threads is a wait for the scheduler */
}

static void windows(void **state)
{
    (void)state;
    crowd("gemma3", 2000, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(all_positions), cmocka_unit_test(windows) };
    snprintf(path, sizeof path, "/tmp/quern-requests-many-%d.gguf", (int)getpid());
    const int n = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return n;
}

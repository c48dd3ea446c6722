/* The profile of an engine, and what it says beforehand that a step costs, agree; steps that cannot be are refused. */
#include "quern.h"
#include "tests/common/tiny_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { CHUNK = 32, CTX = 100 };

typedef struct world {
    qn_model *model;
    qn_engine *engine;
    qn_session *session;
    float *logits;
} world;

static void open_world(world *w, const char *arch, bool profile)
{
    char path[64];
    qn_err err = { 0 };
    qn_model_info info;
    const qn_engine_opts o = { .size = sizeof o, .n_threads = 2, .n_ctx = CTX, .n_chunk = CHUNK, .profile = profile };
    snprintf(path, sizeof path, "/tmp/quern-cost-%d.gguf", (int)getpid());
    assert_true(tiny_model_write(path, arch, 0, 1));
    if (qn_model_open(&w->model, path, NULL, &err) || qn_engine_open(&w->engine, w->model, &o, &err) ||
        qn_session_open(&w->session, w->engine, &err))
        fail_msg("%s", err.text);
    unlink(path);
    qn_model_get_info(w->model, &info);
    w->logits = calloc((size_t)info.n_vocab * CHUNK, sizeof *w->logits);
    assert_non_null(w->logits);
}

static void close_world(world *w)
{
    qn_session_close(&w->session);
    qn_engine_close(&w->engine);
    qn_model_close(&w->model);
    free(w->logits);
}

/* Sum over the stages since the last reset. */
static void profiled(const qn_engine *e, double *bytes, double *mul_adds, double *seconds)
{
    qn_stage_info s;
    *bytes = *mul_adds = *seconds = 0;
    for (int32_t i = 0; qn_engine_stage_at(e, i, &s); i++) {
        *bytes += s.bytes;
        *mul_adds += s.mul_adds;
        *seconds += s.seconds;
        assert_true(s.n_runs <= 1); /* what ends without a barrier counts with the next stage */
    }
}

static void check_arch(const char *arch)
{
    static const int32_t ids[CTX] = { 1, 5, 9 };
    static const struct { int32_t n, n_outputs; } step[] = { { 7, 0 }, { CHUNK, 1 }, { 1, 1 }, { 3, 3 }, { CHUNK, 0 }, { 1, 1 } };
    world w = { 0 };
    open_world(&w, arch, true);
    for (size_t i = 0; i < sizeof step / sizeof *step; i++) {
        double bytes, mul_adds, got_bytes, got_mul_adds, seconds;
        const int32_t n = step[i].n, at = qn_session_position(w.session);
        float *logits = step[i].n_outputs ? w.logits : NULL;
        assert_int_equal(qn_engine_cost(w.engine, at, n, step[i].n_outputs, &bytes, &mul_adds, NULL), QN_OK);
        assert_true(bytes > 0 && mul_adds > 0);
        qn_engine_stage_reset(w.engine);
        if (step[i].n_outputs > 1) assert_int_equal(qn_session_eval_all(w.session, ids + at, n, logits, NULL), QN_OK);
        else assert_int_equal(qn_session_eval(w.session, ids + at, n, logits, NULL), QN_OK);
        profiled(w.engine, &got_bytes, &got_mul_adds, &seconds);
        assert_true(got_bytes == bytes && got_mul_adds == mul_adds);
        assert_true(seconds > 0);
    }
    close_world(&w);
}

static void test_as_profiled(void **state)
{
    (void)state;
    check_arch("llama");
    check_arch("gemma3"); /* whose windows end what is read */
}

/* The header alone tells what a model and its engine take, to the byte, of every architecture. */
static void test_as_estimated(void **state)
{
    char arch[64];
    (void)state;
    for (int32_t a = 0; tiny_model_name(a, arch); a++) {
        world w = { 0 };
        qn_memory_plan plan;
        qn_engine_info engine;
        qn_model_info model;
        qn_err err = { 0 };
        const qn_engine_opts o = { .size = sizeof o, .n_threads = 2, .n_ctx = CTX, .n_chunk = CHUNK };
        open_world(&w, arch, false);
        if (qn_memory_estimate(qn_model_file(w.model), &o, &plan, &err)) fail_msg("%s: %s", arch, err.text);
        qn_engine_get_info(w.engine, &engine);
        qn_model_get_info(w.model, &model);
        if (plan.kv_bytes != engine.kv_bytes || plan.scratch_bytes != engine.scratch_bytes || plan.weight_bytes != model.weight_bytes)
            fail_msg("%s: %llu + %llu + %llu bytes are expected, %llu + %llu + %llu taken", arch, (unsigned long long)plan.weight_bytes,
                     (unsigned long long)plan.kv_bytes, (unsigned long long)plan.scratch_bytes, (unsigned long long)model.weight_bytes,
                     (unsigned long long)engine.kv_bytes, (unsigned long long)engine.scratch_bytes);
        close_world(&w);
    }
}

static void test_refused(void **state)
{
    static const struct { int32_t position, n, n_outputs; } wrong[] = {
        { 0, 0, 0 }, { 0, -1, 0 }, { 0, CHUNK + 1, 0 }, { 0, 1, 2 }, { 0, 1, -1 }, { -1, 1, 0 }, { CTX, 1, 0 }, { CTX - 1, 2, 0 }, { INT32_MAX, 1, 0 },
    };
    world w = { 0 };
    (void)state;
    open_world(&w, "llama", false);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        double bytes = -1, mul_adds = -1;
        qn_err err = { 0 };
        assert_int_equal(qn_engine_cost(w.engine, wrong[i].position, wrong[i].n, wrong[i].n_outputs, &bytes, &mul_adds, &err), QN_ERR_ARG);
        assert_true(bytes == 0 && mul_adds == 0 && err.text[0]);
    }
    assert_int_equal(qn_engine_stage_count(w.engine), 0);
    close_world(&w);
}

static void test_peak(void **state)
{
    const char *level[16];
    double rate;
    qn_err err = { 0 };
    (void)state;
    const int32_t n = qn_cpu_levels(level, 16);
    for (int32_t i = 0; i < n && i < 16; i++) {
        assert_int_equal(qn_cpu_peak(level[i], &rate, &err), QN_OK);
        assert_true(rate > 1e6);
    }
    assert_int_equal(qn_cpu_peak("nonsense", &rate, &err), QN_ERR_ARG);
    assert_true(rate == 0 && err.text[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_profiled), cmocka_unit_test(test_as_estimated), cmocka_unit_test(test_refused), cmocka_unit_test(test_peak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

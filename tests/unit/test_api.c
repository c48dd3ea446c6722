/* The public interface as programs of other versions meet it: smaller and larger options, totals and their histograms, notes, hidden states. */
#include "src/base/opts.h"
#include "src/run/stats.h"
#include "tests/common/tiny_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static char path[64];
static const int32_t ids[] = { 1, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140, 150, 160, 170, 180, 190, 200 };
enum { N_IDS = sizeof ids / sizeof *ids };

typedef struct old_opts {
    size_t size;
    int32_t a;
} old_opts;
typedef struct new_opts {
    size_t size;
    int32_t a, b;
    double c;
} new_opts;

static void sizes(void **state)
{
    (void)state;
    qn_err err = { 0 };
    new_opts n = { .b = 9, .c = 9 };
    const old_opts old = { sizeof old, 5 };
    assert_int_equal(qn_opts_take(&n, sizeof n, &old, "test", &err), QN_OK);
    assert_true(n.size == sizeof n && n.a == 5 && n.c == 0);
    old_opts o;
    const new_opts off = { sizeof off, 5, 0, 0 }, on = { sizeof on, 5, 0, 1 }, unset = { 0 };
    assert_int_equal(qn_opts_take(&o, sizeof o, &off, "test", &err), QN_OK);
    assert_int_equal(o.a, 5);
    assert_int_equal(qn_opts_take(&o, sizeof o, &on, "test", &err), QN_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "test"));
    assert_int_equal(qn_opts_take(&o, sizeof o, &unset, "test", &err), QN_ERR_ARG);
    assert_int_equal(qn_opts_take(&n, sizeof n, NULL, "test", &err), QN_OK);
    assert_true(n.size == sizeof n && n.a == 0);
}

/* Every function with options: those of the first version work, no size is refused, what is not known is refused. */
static void every_open(void **state)
{
    (void)state;
    union {
        qn_model_opts model;
        qn_engine_opts engine;
        qn_sample_opts sample;
        qn_generate_opts generate;
        qn_request_opts request;
        qn_imatrix_opts imatrix;
        qn_quantize_opts quantize;
        qn_gptq_opts gptq;
        qn_embed_opts embed;
        qn_template_limits limits;
        size_t size;
        char bytes[1024];
    } o;
    qn_model *m = NULL;
    qn_engine *e = NULL;
    qn_session *s = NULL;
    qn_sampler *sampler = NULL;
    qn_request *r = NULL;
    qn_imatrix *im = NULL;
    qn_quantize *q = NULL;
    qn_gptq *g = NULL;
    qn_template *t = NULL;
    qn_err err = { 0 };
    const qn_engine_opts small = { .size = sizeof small, .n_ctx = 64, .n_threads = 1 };
    assert_true(tiny_model_write(path, "llama", 8, 3));
    assert_int_equal(qn_model_open(&m, path, NULL, &err), QN_OK);
    assert_int_equal(qn_engine_open(&e, m, &small, &err), QN_OK);
    assert_int_equal(qn_session_open(&s, e, &err), QN_OK);
    assert_int_equal(qn_sampler_open(&sampler, m, NULL, &err), QN_OK);
    for (int k = 0; k < 2; k++) { /* no size; a field that nobody knows */
        qn_model *m2 = NULL;
        qn_engine *e2 = NULL;
        qn_sampler *s2 = NULL;
        const qn_status want = k ? QN_ERR_UNSUPPORTED : QN_ERR_ARG;
        memset(&o, 0, sizeof o);
        if (k) o.size = sizeof o;
        o.bytes[sizeof o - 1] = 1;
        assert_int_equal(qn_model_open(&m2, path, &o.model, &err), want);
        assert_int_equal(qn_engine_open(&e2, m, &o.engine, &err), want);
        assert_int_equal(qn_sampler_open(&s2, m, &o.sample, &err), want);
        assert_int_equal(qn_session_generate(s, ids, 3, sampler, &o.generate, NULL, &err), want);
        assert_int_equal(qn_engine_submit(e, &o.request, &r, &err), want);
        assert_int_equal(qn_engine_embed(e, NULL, 0, &o.embed, NULL, &err), want);
        assert_int_equal(qn_imatrix_collect(&im, m, (qn_str){ "text", 4 }, &o.imatrix, &err), want);
        assert_int_equal(qn_quantize_open(&q, path, &o.quantize, &err), want);
        assert_int_equal(qn_gptq_open(&g, NULL, path, &o.gptq, &err), want);
        qn_memory_plan plan;
        assert_int_equal(qn_memory_estimate(qn_model_file(m), &o.engine, &plan, &err), want);
        assert_int_equal(qn_template_open(&t, (qn_str){ "x", 1 }, &o.limits, &err), want);
        assert_true(!m2 && !e2 && !s2 && !r && !im && !q && !g && !t);
    }
    /* a generation of the first version: no field behind max_tokens */
    qn_generate_result res;
    memset(&o, 0xff, sizeof o);
    o.generate.size = offsetof(qn_generate_opts, stop);
    o.generate.max_tokens = 2;
    assert_int_equal(qn_session_generate(s, ids, 3, sampler, &o.generate, &res, &err), QN_OK);
    assert_true(res.n_generated <= 2);
    qn_sampler_close(&sampler);
    qn_session_close(&s);
    qn_engine_close(&e);
    qn_model_close(&m);
}

static void histogram(void **state)
{
    (void)state;
    qn_histogram h = { 0 };
    assert_true(qn_histogram_quantile(&h, 0.5) == 0);
    assert_true(isinf(qn_histogram_bound(QN_HISTOGRAM_BUCKETS - 1)) && qn_histogram_bound(34) == 1 && qn_histogram_bound(36) == 2);
    for (int32_t i = 0; i < QN_HISTOGRAM_BUCKETS - 1; i++) { /* a bound belongs to its bucket, what is above it to the next */
        memset(&h, 0, sizeof h);
        qn_histogram_add(&h, qn_histogram_bound(i));
        qn_histogram_add(&h, nextafter(qn_histogram_bound(i), INFINITY));
        assert_true(h.bucket[i] == 1 && h.bucket[i + 1] == 1 && h.n == 2);
    }
    memset(&h, 0, sizeof h);
    for (int i = 1; i <= 1000; i++) qn_histogram_add(&h, i * 1e-3);
    for (double q = 0.1; q < 1; q += 0.1) assert_true(fabs(qn_histogram_quantile(&h, q) / q - 1) < 0.1);
    assert_true(fabs(h.sum - 500.5) < 1e-9 && qn_histogram_quantile(&h, 0) <= 2e-3 && qn_histogram_quantile(&h, 1) <= 1);
    qn_histogram_add(&h, 0);
    qn_histogram_add(&h, 1e300);
    assert_true(h.bucket[0] >= 1 && h.bucket[QN_HISTOGRAM_BUCKETS - 1] == 1);
}

static void totals(void **state)
{
    (void)state;
    qn_model *m = NULL;
    qn_engine *e = NULL;
    qn_session *s = NULL;
    qn_sampler *sampler = NULL;
    qn_request *r = NULL;
    qn_err err = { 0 };
    qn_engine_stats st;
    qn_generate_result res = { 0 };
    const qn_engine_opts eo = { .size = sizeof eo, .n_ctx = 128, .n_threads = 1, .n_sessions = 2 };
    const qn_generate_opts go = { .size = sizeof go, .max_tokens = 9, .ignore_end = true };
    const qn_request_opts ro = { .size = sizeof ro, .prompt = ids, .n_prompt = N_IDS, .max_tokens = 7, .ignore_end = true, .n_choices = 2 };
    assert_true(tiny_model_write(path, "llama", 8, 3));
    assert_int_equal(qn_model_open(&m, path, NULL, &err), QN_OK);
    assert_int_equal(qn_engine_open(&e, m, &eo, &err), QN_OK);
    assert_int_equal(qn_session_open(&s, e, &err), QN_OK);
    assert_int_equal(qn_sampler_open(&sampler, m, NULL, &err), QN_OK);
    assert_int_equal(qn_session_generate(s, ids, N_IDS, sampler, &go, &res, &err), QN_OK);
    qn_engine_get_stats(e, &st);
    assert_true(st.n_requests == 1 && st.n_ended == 1 && st.n_generated == 9 && st.n_steps == 9 && st.first_token_seconds.n == 1);
    assert_true(st.token_seconds.n == 8 && st.queue_seconds.n == 0 && st.step_tokens.sum == N_IDS + 8);
    assert_true(res.slowest_seconds > 0 && res.slowest_seconds <= res.generate_seconds);
    assert_int_equal(qn_engine_submit(e, &ro, &r, &err), QN_OK);
    assert_true(qn_request_wait(r, 60));
    qn_request_close(&r);
    qn_engine_get_stats(e, &st);
    assert_true(st.n_requests == 3 && st.n_ended == 3 && st.n_generated == 9 + 14 && st.queue_seconds.n == 2);
    assert_true(st.first_token_seconds.n == 3 && st.token_seconds.n == 8 + 12 && st.step_answers.n == st.n_steps);
    qn_sampler_close(&sampler);
    qn_session_close(&s);
    qn_engine_close(&e);
    qn_model_close(&m);
}

static void count_notes(void *user, const char *text)
{
    assert_non_null(strstr(text, "positions"));
    ++*(int *)user;
}

static void notes(void **state)
{
    (void)state;
    qn_model *m = NULL;
    qn_engine *e = NULL;
    qn_err err = { 0 };
    int n = 0;
    const qn_model_opts mo = { .size = sizeof mo, .log = count_notes, .log_user = &n };
    qn_engine_opts eo = { .size = sizeof eo, .n_ctx = TINY_CTX, .n_threads = 1 };
    assert_true(tiny_model_write(path, "llama", 8, 3));
    assert_int_equal(qn_model_open(&m, path, &mo, &err), QN_OK);
    for (int k = 0; k < 2; k++) {
        qn_model_info info;
        qn_model_get_info(m, &info);
        eo.n_ctx = info.n_ctx_train + k;
        assert_int_equal(qn_engine_open(&e, m, &eo, &err), QN_OK);
        qn_engine_close(&e);
        assert_int_equal(n, k);
    }
    qn_model_close(&m);
}

/* The last token's hidden state, times the head, is its logits; chunks and threads change nothing. */
static void hidden_states(void **state)
{
    (void)state;
    qn_model *m = NULL;
    qn_err err = { 0 };
    qn_model_info info;
    assert_true(tiny_model_write(path, "llama", 0, 3));
    assert_int_equal(qn_model_open(&m, path, NULL, &err), QN_OK);
    qn_model_get_info(m, &info);
    const size_t n_embd = (size_t)info.n_embd;
    float *row = calloc(N_IDS * n_embd, sizeof *row), *other = calloc(N_IDS * n_embd, sizeof *row), *one = calloc(n_embd, sizeof *one);
    float logits[TINY_VOCAB], after[TINY_VOCAB];
    for (int32_t k = 0; k < 2; k++) {
        qn_engine *e = NULL;
        qn_session *s = NULL;
        const qn_engine_opts eo = { .size = sizeof eo, .n_ctx = 64, .n_threads = 1 + k, .n_chunk = k ? 3 : 32 };
        assert_int_equal(qn_engine_open(&e, m, &eo, &err), QN_OK);
        assert_int_equal(qn_session_open(&s, e, &err), QN_OK);
        assert_int_equal(qn_session_eval(s, ids, N_IDS, logits, &err), QN_OK);
        assert_int_equal(qn_session_embed(s, ids, N_IDS, QN_POOLING_NONE, false, k ? other : row, &err), QN_OK);
        assert_int_equal(qn_session_position(s), N_IDS);
        assert_int_equal(qn_session_rewind(s, ids, N_IDS - 1), N_IDS - 1); /* what it has evaluated is good for more */
        assert_int_equal(qn_session_eval(s, ids + N_IDS - 1, 1, after, &err), QN_OK);
        assert_memory_equal(logits, after, sizeof logits);
        assert_int_equal(qn_session_embed(s, ids, N_IDS, QN_POOLING_LAST, false, one, &err), QN_OK);
        assert_memory_equal(one, (k ? other : row) + (N_IDS - 1) * n_embd, n_embd * sizeof *one);
        assert_int_equal(qn_session_embed(s, ids, N_IDS, QN_POOLING_MEAN, true, one, &err), QN_OK);
        double length = 0;
        for (size_t i = 0; i < n_embd; i++) length += (double)one[i] * (double)one[i];
        assert_true(fabs(length - 1) < 1e-5);
        assert_int_equal(qn_session_embed(s, ids, 0, QN_POOLING_MEAN, true, one, &err), QN_ERR_ARG);
        assert_int_equal(qn_session_embed(s, ids, N_IDS, (qn_pooling)9, true, one, &err), QN_ERR_ARG);
        qn_session_close(&s);
        qn_engine_close(&e);
    }
    assert_memory_equal(row, other, N_IDS * n_embd * sizeof *row);
    const qn_file *f = qn_model_file(m);
    const int64_t head = qn_file_tensor_find(f, "output.weight") >= 0 ? qn_file_tensor_find(f, "output.weight") : qn_file_tensor_find(f, "token_embd.weight");
    for (int32_t t = 0; t < TINY_VOCAB; t++) {
        double sum = 0;
        assert_int_equal(qn_file_rows_f32(f, head, t, 1, one, &err), QN_OK);
        for (size_t i = 0; i < n_embd; i++) sum += (double)one[i] * (double)row[(N_IDS - 1) * n_embd + i];
        assert_true(fabs(sum - (double)logits[t]) < 1e-3 * (1 + fabs(sum)));
    }
    free(row);
    free(other);
    free(one);
    qn_model_close(&m);
}

int main(void)
{
    snprintf(path, sizeof path, "/tmp/quern-api-%ld.gguf", (long)getpid());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes), cmocka_unit_test(every_open), cmocka_unit_test(histogram), cmocka_unit_test(totals), cmocka_unit_test(notes),
        cmocka_unit_test(hidden_states),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}

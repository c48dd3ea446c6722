/* qn_session_generate on a tiny model: the loop against one written here, ends of every kind, and a session that stays good after each. */
#include "src/quern.h"
#include "tests/common/fault.h"
#include "tests/common/tiny_model.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { F16 = 1, CTX = 64, MAX_TEXT = 4096 };

static char path[64];
static qn_model *model;
static qn_engine *engine;
static qn_session *session;

/* What callbacks got. */
typedef struct heard {
    char text[MAX_TEXT];
    size_t n_text;
    int32_t ids[CTX * 4];
    int n_ids, n_calls;
    int stop_after;   /* calls; 0: never. on_text returns false then */
    bool cancels;     /* ... or calls qn_session_cancel instead      */
} heard;

static bool is_whole_utf8(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n;) {
        const int len = p[i] < 0x80 ? 1 : p[i] >= 0xf0 ? 4 : p[i] >= 0xe0 ? 3 : p[i] >= 0xc2 ? 2 : 0;
        if (!len || i + (size_t)len > n) return false;
        for (int k = 1; k < len; k++)
            if ((p[i + (size_t)k] & 0xc0) != 0x80) return false;
        i += (size_t)len;
    }
    return true;
}

static bool on_text(void *user, const char *text, size_t n)
{
    heard *h = user;
    assert_true(n > 0 && h->n_text + n < MAX_TEXT);
    assert_true(is_whole_utf8((const unsigned char *)text, n));
    memcpy(h->text + h->n_text, text, n);
    h->text[h->n_text += n] = 0;
    if (!h->stop_after || ++h->n_calls < h->stop_after) return true;
    if (!h->cancels) return false;
    qn_session_cancel(session);
    return true;
}

static void on_token(void *user, int32_t id)
{
    heard *h = user;
    h->ids[h->n_ids++] = id;
}

static const int32_t prompt[] = { 1, 72, 200, 3, 99, 150, 77, 30 };
enum { N_PROMPT = sizeof prompt / sizeof *prompt };

static qn_status generate(const qn_sample_opts *so, qn_generate_opts go, const int32_t *ids, int32_t n, heard *h, qn_generate_result *r)
{
    qn_sampler *s;
    qn_err err = { 0 };
    go.size = sizeof go;
    go.on_text = on_text;
    go.on_token = on_token;
    go.user = h;
    if (qn_sampler_open(&s, model, so, &err) != QN_OK) fail_msg("%s", err.text);
    const qn_status status = qn_session_generate(session, ids, n, s, &go, r, &err);
    if (status != QN_OK) assert_true(err.status == status && err.text[0]);
    qn_sampler_close(&s);
    return status;
}

/* Hot, so that the toy model's bytes are all sorts of UTF-8, broken too. */
static const qn_sample_opts hot = { .size = sizeof hot, .seed = 8, .temperature = 1.4f };

static void test_equals_the_loop(void **state)
{
    (void)state;
    heard h = { 0 };
    qn_generate_result r;
    assert_int_equal(generate(&hot, (qn_generate_opts){ .max_tokens = 40, .ignore_end = true }, prompt, N_PROMPT, &h, &r), QN_OK);
    assert_true(r.finish == QN_FINISH_LENGTH && r.n_generated == 40 && r.n_prompt == N_PROMPT && r.stop_index == -1 && h.n_ids == 40);

    float logits[TINY_VOCAB];
    qn_sampler *s;
    qn_session *own;
    assert_int_equal(qn_sampler_open(&s, model, &hot, NULL), QN_OK);
    assert_int_equal(qn_session_open(&own, engine, NULL), QN_OK);
    assert_int_equal(qn_session_eval(own, prompt, N_PROMPT, logits, NULL), QN_OK);
    for (int i = 0; i < 40; i++) {
        int32_t id;
        assert_int_equal(qn_sampler_pick(s, logits, &id, NULL), QN_OK);
        assert_int_equal(id, h.ids[i]);
        assert_int_equal(qn_session_eval(own, &id, 1, logits, NULL), QN_OK);
    }
    qn_sampler_close(&s);
    qn_session_close(&own);
}

static void test_text_is_that_of_the_tokens(void **state)
{
    (void)state;
    for (int special = 0; special < 2; special++) {
        heard h = { 0 };
        qn_generate_result r;
        char bytes[MAX_TEXT];
        size_t n = 0;
        assert_int_equal(generate(&hot, (qn_generate_opts){ .max_tokens = 50, .ignore_end = true, .special = special }, prompt, N_PROMPT, &h, &r), QN_OK);
        for (int i = 0; i < h.n_ids; i++) {
            qn_str t;
            assert_int_equal(qn_token_text(model, h.ids[i], special, &t), QN_OK);
            memcpy(bytes + n, t.ptr, t.len);
            n += t.len;
        }
        bytes[n] = 0;
        size_t at = 0; /* valid characters are the same; each U+FFFD stands for one to three bytes */
        for (size_t i = 0; i < h.n_text;) {
            if (at < n && h.text[i] == bytes[at] && (h.text[i] != '\xef' || !memcmp(h.text + i, bytes + at, 3))) {
                i++;
                at++;
                continue;
            }
            assert_memory_equal(h.text + i, "\xef\xbf\xbd", 3);
            i += 3;
            at++;
            for (int k = 0; k < 2 && at < n && (bytes[at] & 0xc0) == 0x80 && h.text[i] != '\xef'; k++) at++;
        }
        assert_true(at <= n && h.n_text > 20);
    }
}

static void test_warm_equals_cold(void **state)
{
    (void)state;
    heard a = { 0 }, b = { 0 }, c = { 0 };
    qn_generate_result r;
    const qn_generate_opts o = { .max_tokens = 30, .ignore_end = true };
    qn_session_rewind(session, NULL, 0);
    assert_int_equal(generate(&hot, o, prompt, N_PROMPT, &a, &r), QN_OK);
    assert_int_equal(r.n_cached, 0);
    assert_int_equal(generate(&hot, o, prompt, N_PROMPT, &b, &r), QN_OK);
    assert_int_equal(r.n_cached, N_PROMPT - 1); /* the last one is evaluated for its logits */
    assert_int_equal(generate(&hot, o, prompt, N_PROMPT - 3, &c, &r), QN_OK);
    memset(&c, 0, sizeof c);
    assert_int_equal(generate(&hot, o, prompt, N_PROMPT, &c, &r), QN_OK);
    assert_true(r.n_cached >= N_PROMPT - 4 && r.n_cached < N_PROMPT);
    assert_memory_equal(a.ids, b.ids, sizeof a.ids);
    assert_memory_equal(a.ids, c.ids, sizeof a.ids);
    assert_string_equal(a.text, c.text);
}

static void test_stop_strings(void **state)
{
    (void)state;
    heard all = { 0 };
    qn_generate_result r;
    assert_int_equal(generate(&hot, (qn_generate_opts){ .max_tokens = 50, .ignore_end = true }, prompt, N_PROMPT, &all, &r), QN_OK);
    for (size_t at = 0; at + 6 < all.n_text; at++) { /* every piece of the text as a stop string, most of them over token borders */
        char stop[7] = { 0 };
        if ((all.text[at] & 0xc0) == 0x80 || (all.text[at + 6] & 0xc0) == 0x80) continue; /* starts or ends inside a character */
        memcpy(stop, all.text + at, 6);
        if (strstr(stop, "\xef\xbf\xbd")) continue; /* a replacement is no text of the model's */
        const char *stops[] = { "\x01nothing", stop };
        heard h = { 0 };
        assert_int_equal(generate(&hot, (qn_generate_opts){ .max_tokens = 50, .ignore_end = true, .stop = stops, .n_stop = 2 }, prompt,
                                  N_PROMPT, &h, &r), QN_OK);
        assert_int_equal(r.finish, QN_FINISH_STOP);
        assert_int_equal(r.stop_index, 1);
        assert_int_equal(h.n_text, strstr(all.text, stop) - all.text);
        assert_memory_equal(h.text, all.text, h.n_text);
    }
    const char *empty[] = { "" };
    heard h = { 0 };
    assert_int_equal(generate(&hot, (qn_generate_opts){ .stop = empty, .n_stop = 1 }, prompt, N_PROMPT, &h, &r), QN_ERR_ARG);
}

static void test_end_tokens(void **state)
{
    (void)state;
    const qn_logit_bias bias = { qn_token_id(model, "eos"), 1000 };
    const qn_sample_opts ends = { .size = sizeof ends, .bias = &bias, .n_bias = 1 };
    heard h = { 0 };
    qn_generate_result r;
    assert_true(bias.id >= 0);
    assert_int_equal(generate(&ends, (qn_generate_opts){ .max_tokens = 9 }, prompt, N_PROMPT, &h, &r), QN_OK);
    assert_true(r.finish == QN_FINISH_STOP && r.n_generated == 1 && h.n_text == 0 && h.n_ids == 1 && h.ids[0] == bias.id);
    memset(&h, 0, sizeof h);
    assert_int_equal(generate(&ends, (qn_generate_opts){ .max_tokens = 9, .ignore_end = true }, prompt, N_PROMPT, &h, &r), QN_OK);
    assert_true(r.finish == QN_FINISH_LENGTH && r.n_generated == 9 && h.n_text == 0);
}

static void test_full_context(void **state)
{
    (void)state;
    int32_t long_prompt[CTX + 1];
    for (int i = 0; i <= CTX; i++) long_prompt[i] = 3 + i;
    static const int32_t limits[] = { 0, -1, 1000 };
    for (int i = 0; i < 3; i++) { /* the answer ends where the context does, with one token more than it holds */
        heard h = { 0 };
        qn_generate_result r;
        assert_int_equal(generate(&hot, (qn_generate_opts){ .max_tokens = limits[i], .ignore_end = true }, prompt, N_PROMPT, &h, &r), QN_OK);
        assert_int_equal(r.finish, QN_FINISH_LENGTH);
        assert_int_equal(r.n_generated, CTX - N_PROMPT + 1);
        assert_int_equal(qn_session_position(session), CTX);
        const int32_t before = qn_session_position(session);
        assert_int_equal(generate(&hot, (qn_generate_opts){ 0 }, long_prompt, CTX + 1, &h, &r), QN_ERR_CTX_FULL);
        assert_int_equal(qn_session_position(session), before); /* nothing was evaluated */
        assert_int_equal(r.finish, QN_FINISH_ERROR);
        assert_int_equal(generate(&hot, (qn_generate_opts){ 0 }, long_prompt, CTX, &h, &r), QN_OK); /* it just fits: one token comes out */
        assert_true(r.n_generated == 1 && (r.finish == QN_FINISH_LENGTH || r.finish == QN_FINISH_STOP));
    }
}

static void test_cancel(void **state)
{
    (void)state;
    heard want = { 0 };
    qn_generate_result r;
    const qn_generate_opts o = { .max_tokens = 30, .ignore_end = true };
    assert_int_equal(generate(&hot, o, prompt, N_PROMPT, &want, &r), QN_OK);
    for (int cancels = 0; cancels < 2; cancels++) {
        heard h = { .stop_after = 3, .cancels = cancels };
        assert_int_equal(generate(&hot, o, prompt, N_PROMPT, &h, &r), QN_OK);
        assert_int_equal(r.finish, QN_FINISH_CANCELLED);
        assert_true(r.n_generated < 30 && h.n_ids == r.n_generated);
        assert_memory_equal(h.text, want.text, h.n_text);
        memset(&h, 0, sizeof h); /* the next answer knows nothing of it */
        assert_int_equal(generate(&hot, o, prompt, N_PROMPT, &h, &r), QN_OK);
        assert_memory_equal(h.ids, want.ids, sizeof h.ids);
    }
    heard last = { .stop_after = 1, .cancels = true }; /* a cancel at the last token comes too late, and does not hit the next answer */
    assert_int_equal(generate(&hot, (qn_generate_opts){ .max_tokens = 1 }, prompt, N_PROMPT, &last, &r), QN_OK);
    heard h = { 0 };
    assert_int_equal(generate(&hot, o, prompt, N_PROMPT, &h, &r), QN_OK);
    assert_memory_equal(h.ids, want.ids, sizeof h.ids);
}

static void *cancel_soon(void *arg)
{
    (void)arg;
    usleep(20000);
    qn_session_cancel(session);
    return NULL;
}

/* From another thread, with a context that is filled over and over: the answer ends within a step. */
static void test_cancel_from_a_thread(void **state)
{
    (void)state;
    for (int round = 0; round < 5; round++) {
        pthread_t t;
        qn_generate_result r = { .finish = QN_FINISH_LENGTH };
        assert_int_equal(pthread_create(&t, NULL, cancel_soon, NULL), 0);
        for (int i = 0; i < 100000 && r.finish == QN_FINISH_LENGTH; i++) {
            heard h = { 0 };
            assert_int_equal(generate(&hot, (qn_generate_opts){ .ignore_end = true }, prompt, N_PROMPT, &h, &r), QN_OK);
            if (qn_session_position(session) == CTX && i > 2000) break; /* it came between two answers */
        }
        pthread_join(t, NULL);
        qn_generate_result rest; /* where it came in between, it ends the next one: let it */
        heard h = { 0 };
        assert_int_equal(generate(&hot, (qn_generate_opts){ .max_tokens = 2 }, prompt, N_PROMPT, &h, &rest), QN_OK);
    }
}

static void test_faults(void **state)
{
    (void)state;
    heard want = { 0 };
    qn_generate_result r;
    const qn_generate_opts o = { .max_tokens = 10, .ignore_end = true };
    assert_int_equal(generate(&hot, o, prompt, N_PROMPT, &want, &r), QN_OK);
    qn_logit_bias ban[TINY_VOCAB];
    for (int i = 0; i < TINY_VOCAB; i++) ban[i] = (qn_logit_bias){ i, -INFINITY };
    const qn_sample_opts none = { .size = sizeof none, .bias = ban, .n_bias = TINY_VOCAB };
    heard h = { 0 };
    assert_int_equal(generate(&none, o, prompt, N_PROMPT, &h, &r), QN_ERR_NUMERIC);
    assert_int_equal(r.finish, QN_FINISH_ERROR);
    static const int32_t bad[] = { -1, TINY_VOCAB, INT32_MAX };
    for (int i = 0; i < 3; i++) assert_int_equal(generate(&hot, o, &bad[i], 1, &h, &r), QN_ERR_ARG);
    assert_int_equal(generate(&hot, o, prompt, 0, &h, &r), QN_ERR_ARG);
    assert_int_equal(h.n_text, 0);
    assert_int_equal(generate(&hot, o, prompt, N_PROMPT, &h, &r), QN_OK);
    assert_memory_equal(h.ids, want.ids, sizeof h.ids);
}

static void test_allocation_faults(void **state)
{
    (void)state;
    static const char *const stops[] = { "never ever" };
    long n = 1;
    for (bool failed = true; failed; n++) {
        qn_sampler *s;
        heard h = { 0 };
        const qn_generate_opts go = { .size = sizeof go, .max_tokens = 5, .ignore_end = true, .stop = stops, .n_stop = 1, .on_text = on_text, .user = &h };
        assert_int_equal(qn_sampler_open(&s, model, &hot, NULL), QN_OK);
        test_fail_alloc_at(n);
        const qn_status status = qn_session_generate(session, prompt, N_PROMPT, s, &go, NULL, NULL);
        failed = test_alloc_has_failed();
        test_fail_alloc_at(0);
        assert_int_equal(status, failed ? QN_ERR_NOMEM : QN_OK);
        qn_sampler_close(&s);
    }
    assert_true(n > 4);
}

static int setup(void **state)
{
    (void)state;
    qn_err err = { 0 };
    qn_engine_opts o = QN_ENGINE_OPTS_INIT;
    o.n_sessions = 2;
    o.n_threads = 2;
    o.n_ctx = CTX;
    snprintf(path, sizeof path, "/tmp/quern-generate-%d.gguf", (int)getpid());
    if (!tiny_model_write(path, "llama", F16, 5) || qn_model_open(&model, path, NULL, &err) != QN_OK ||
        qn_engine_open(&engine, model, &o, &err) != QN_OK || qn_session_open(&session, engine, &err) != QN_OK) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    qn_session_close(&session);
    qn_engine_close(&engine);
    qn_model_close(&model);
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_the_loop),
        cmocka_unit_test(test_text_is_that_of_the_tokens),
        cmocka_unit_test(test_warm_equals_cold),
        cmocka_unit_test(test_stop_strings),
        cmocka_unit_test(test_end_tokens),
        cmocka_unit_test(test_full_context),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_cancel_from_a_thread),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_allocation_faults),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

/* Embeddings over every registered architecture: a text's vector is the same bits alone, beside others, in steps of any size, on any number of threads, by
 * session or by engine; what cannot be is refused with a sentence, and an allocation that fails leaves nothing behind. */
#include "models/model.h"
#include "src/run/engine.h"
#include "tests/common/fault.h"
#include "tests/common/tiny_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { N_TEXTS = 9, MOST = 45, MOST_EMBD = 256 };
static const int32_t lengths[N_TEXTS] = { 5, 1, 33, 16, 45, 2, 17, 1, 40 };

static char path[64];
static int32_t ids[N_TEXTS][MOST];
static qn_embed_text texts[N_TEXTS];

static void make_texts(void)
{
    uint32_t seed = 5;
    for (int i = 0; i < N_TEXTS; i++) {
        for (int k = 0; k < lengths[i]; k++) {
            seed = seed * 1664525u + 1013904223u;
            ids[i][k] = (int32_t)((seed >> 8) % TINY_VOCAB);
        }
        texts[i] = (qn_embed_text){ .tokens = ids[i], .n = lengths[i] };
    }
}

static qn_model *open_model(const char *arch)
{
    qn_model *m = NULL;
    qn_err err = { 0 };
    assert_true(tiny_model_write(path, arch, 8, 3));
    const qn_model_opts o = { .size = sizeof o, .n_threads = 1 };
    if (qn_model_open(&m, path, &o, &err) != QN_OK) fail_msg("%s", err.text);
    return m;
}

static qn_engine *open_engine(const qn_model *m, int32_t n_threads, int32_t n_chunk)
{
    qn_engine *e = NULL;
    qn_err err = { 0 };
    const qn_engine_opts o = { .size = sizeof o, .n_ctx = 64, .n_chunk = n_chunk, .n_sessions = 3, .exact = true };
    if (qn_engine_open_threads(&e, m, &o, n_threads, &err) != QN_OK) fail_msg("%s", err.text);
    return e;
}

static void check_pooling(const qn_model *m, const char *arch, qn_pooling pooling)
{
    static float whole[N_TEXTS][MOST_EMBD], other[N_TEXTS][MOST_EMBD], one[MOST_EMBD];
    qn_model_info info;
    qn_err err = { 0 };
    qn_model_get_info(m, &info);
    assert_int_equal(info.n_embd, MOST_EMBD);
    const qn_embed_opts o = { .size = sizeof o, .pooling = pooling };
    qn_engine *e = open_engine(m, 1, 64);
    if (qn_engine_embed(e, texts, N_TEXTS, &o, whole[0], &err) != QN_OK) fail_msg("%s: %s", arch, err.text);
    qn_session *s = NULL;
    assert_int_equal(qn_session_open(&s, e, NULL), QN_OK);
    for (int i = 0; i < N_TEXTS; i++) {
        assert_int_equal(qn_engine_embed(e, &texts[i], 1, &o, one, &err), QN_OK);
        if (memcmp(one, whole[i], sizeof one)) fail_msg("%s: other bits of text %d alone, pooling %d", arch, i, (int)pooling);
        assert_int_equal(qn_session_embed(s, ids[i], lengths[i], pooling, false, one, &err), QN_OK);
        if (memcmp(one, whole[i], sizeof one)) fail_msg("%s: other bits of text %d by a session, pooling %d", arch, i, (int)pooling);
        assert_int_equal(qn_session_position(s), lengths[i]);
    }
    qn_session_close(&s);
    qn_engine_close(&e);
    for (int32_t n_threads = 2; n_threads < 4; n_threads++) {
        e = open_engine(m, n_threads, info.is_encoder ? 50 : 3 + 4 * n_threads);
        assert_int_equal(qn_engine_embed(e, texts, N_TEXTS, &o, other[0], &err), QN_OK);
        if (memcmp(other, whole, sizeof whole)) fail_msg("%s: other bits on %d threads in other steps, pooling %d", arch, n_threads, (int)pooling);
        qn_engine_close(&e);
    }
}

static void same_bits(void **state)
{
    (void)state;
    static const qn_pooling pooling[] = { QN_POOLING_MEAN, QN_POOLING_LAST, QN_POOLING_FIRST };
    char arch[64];
    for (int32_t a = 0; tiny_model_name(a, arch); a++) {
        qn_model *m = open_model(arch);
        qn_model_info info;
        qn_model_get_info(m, &info);
        if (info.is_encoder) /* of others, one by turns */
            for (size_t i = 0; i < sizeof pooling / sizeof *pooling; i++) check_pooling(m, arch, pooling[i]);
        else
            check_pooling(m, arch, pooling[a % 3]);
        qn_model_close(&m);
    }
}

/* Rows, their mean, first and last go together; length 1 is what it says. */
static void poolings(void **state)
{
    (void)state;
    static float row[MOST][MOST_EMBD], x[MOST_EMBD];
    static const char *const archs[] = { "bert", "llama" };
    qn_err err = { 0 };
    for (size_t a = 0; a < 2; a++) {
        qn_model *m = open_model(archs[a]);
        qn_engine *e = open_engine(m, 2, 64);
        const qn_embed_text *t = &texts[2];
        qn_embed_opts o = { .size = sizeof o };
        assert_int_equal(qn_engine_embed(e, t, 1, &o, row[0], &err), QN_OK);
        for (o.pooling = QN_POOLING_MEAN; o.pooling <= QN_POOLING_FIRST; o.pooling++) {
            assert_int_equal(qn_engine_embed(e, t, 1, &o, x, &err), QN_OK);
            for (int k = 0; k < MOST_EMBD; k++) {
                double sum = 0;
                for (int i = 0; i < t->n; i++) sum += (double)row[i][k];
                const float want = o.pooling == QN_POOLING_MEAN ? (float)(sum / t->n) : row[o.pooling == QN_POOLING_LAST ? t->n - 1 : 0][k];
                assert_true(x[k] == want);
            }
        }
        o.pooling = QN_POOLING_MODEL;
        o.unit_length = true;
        assert_int_equal(qn_engine_embed(e, t, 1, &o, x, &err), QN_OK);
        double length = 0;
        for (int k = 0; k < MOST_EMBD; k++) length += (double)x[k] * (double)x[k];
        assert_true(fabs(length - 1) < 1e-5);
        qn_engine_close(&e);
        qn_model_close(&m);
    }
}

static bool count_calls(void *user, uint64_t done, uint64_t total)
{
    int *n = user;
    assert_true(done <= total);
    return --*n > 0;
}

static void refusals(void **state)
{
    (void)state;
    static float x[N_TEXTS * MOST_EMBD];
    qn_err err = { 0 };
    int n_calls = 2;
    qn_model *m = open_model("bert");
    qn_engine *e = open_engine(m, 1, 32);
    qn_embed_opts o = { .size = sizeof o, .pooling = QN_POOLING_MEAN };
    assert_int_equal(qn_engine_embed(e, texts, 0, &o, x, &err), QN_OK);
    assert_int_equal(qn_engine_embed(e, texts, N_TEXTS, &o, x, &err), QN_ERR_ARG); /* one step holds 32 tokens */
    assert_non_null(strstr(err.text, "text 2"));
    assert_int_equal(qn_engine_embed(e, &(qn_embed_text){ ids[0], 65, 0 }, 1, &o, x, &err), QN_ERR_CTX_FULL);
    assert_int_equal(qn_engine_embed(e, &(qn_embed_text){ ids[0], 0, 0 }, 1, &o, x, &err), QN_ERR_ARG);
    assert_int_equal(qn_engine_embed(e, &(qn_embed_text){ ids[0], 5, 6 }, 1, &o, x, &err), QN_ERR_ARG);
    assert_int_equal(qn_engine_embed(e, &(qn_embed_text){ (int32_t[]){ TINY_VOCAB }, 1, 0 }, 1, &o, x, &err), QN_ERR_ARG);
    o.pooling = QN_POOLING_RANK;
    assert_int_equal(qn_engine_embed(e, texts, 1, &o, x, &err), QN_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "classifier"));
    o.pooling = (qn_pooling)9;
    assert_int_equal(qn_engine_embed(e, texts, 1, &o, x, &err), QN_ERR_ARG);
    o = (qn_embed_opts){ .size = sizeof o, .pooling = QN_POOLING_MEAN, .progress = count_calls, .progress_user = &n_calls };
    assert_int_equal(qn_engine_embed(e, texts, 2, &o, x, &err), QN_OK);
    n_calls = 1;
    assert_int_equal(qn_engine_embed(e, texts, 2, &o, x, &err), QN_ERR_CANCELLED);
    qn_engine_close(&e);
    qn_model_close(&m);
}

/* Sessions that hold all blocks are told about; once they let go there is room again. Nobody's blocks are lost. */
static void crowded(void **state)
{
    (void)state;
    static float x[N_TEXTS * MOST_EMBD];
    enum { N = 3 };
    qn_err err = { 0 };
    qn_session *s[N];
    qn_model *m = open_model("llama");
    qn_engine *e = open_engine(m, 1, 16);
    const qn_embed_opts o = { .size = sizeof o, .pooling = QN_POOLING_MEAN };
    static int32_t many[64];
    for (int k = 0; k < 64; k++) many[k] = 3 + k;
    for (int i = 0; i < N; i++) {
        many[0] = i;
        assert_int_equal(qn_session_open(&s[i], e, &err), QN_OK);
        assert_int_equal(qn_session_eval(s[i], many, 64, NULL, &err), QN_OK);
    }
    assert_int_equal(qn_engine_embed(e, texts, N_TEXTS, &o, x, &err), QN_ERR_CTX_FULL);
    qn_session_close(&s[0]);
    for (int round = 0; round < 20; round++) assert_int_equal(qn_engine_embed(e, texts, N_TEXTS, &o, x, &err), QN_OK);
    for (int i = 1; i < N; i++) qn_session_close(&s[i]);
    qn_engine_stats st;
    qn_engine_get_stats(e, &st);
    assert_int_equal(st.n_blocks_free + st.n_blocks_idle, st.n_blocks);
    qn_engine_close(&e);
    qn_model_close(&m);
}

static void failing_allocations(void **state)
{
    (void)state;
    static float x[N_TEXTS * MOST_EMBD];
    qn_model *m = open_model("bert");
    qn_engine *e = open_engine(m, 1, 64);
    const qn_embed_opts o = { .size = sizeof o, .pooling = QN_POOLING_MEAN };
    long n = 1;
    for (;; n++) {
        qn_err err = { 0 };
        test_fail_alloc_at(n);
        const qn_status status = qn_engine_embed(e, texts, N_TEXTS, &o, x, &err);
        const bool failed = test_alloc_has_failed();
        test_fail_alloc_at(0);
        if (!failed) break;
        assert_true(status == QN_OK || (status == QN_ERR_NOMEM && err.text[0]));
    }
    assert_true(n > 4);
    qn_engine_close(&e);
    qn_model_close(&m);
}

int main(void)
{
    snprintf(path, sizeof path, "/tmp/quern-embed-%ld.gguf", (long)getpid());
    make_texts();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits), cmocka_unit_test(poolings), cmocka_unit_test(refusals), cmocka_unit_test(crowded), cmocka_unit_test(failing_allocations),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}

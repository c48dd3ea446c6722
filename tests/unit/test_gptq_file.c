/* A model quantised against a text: the file is an ordinary one of the same size, its logits are nearer to the source's than without, a cancel
 * leaves nothing behind, and what cannot be done is said. Linear algebra is written out here. */
#include "src/quern.h"
#include "tests/common/fault.h"
#include "tests/common/tiny_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { CTX = 48, TEXT_BYTES = 1200 };

static char source[64], plain[64], better[64], text[TEXT_BYTES];

static void gram(void *user, int64_t n, int64_t n_rows, const float *x, int64_t x_stride, float *h)
{
    (void)user;
    for (int64_t r = 0; r < n_rows; r++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = i; j < n; j++) h[i * n + j] += x[r * x_stride + i] * x[r * x_stride + j];
}

/* a = v v^T with v upper, from the last column; u = v^-1. */
static bool factor(void *user, int64_t n, double *a)
{
    (void)user;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++) a[i * n + j] = a[j * n + i];
    for (int64_t k = n - 1; k >= 0; k--) {
        if (!(a[k * n + k] > 0)) return false;
        a[k * n + k] = sqrt(a[k * n + k]);
        for (int64_t i = 0; i < k; i++) a[i * n + k] /= a[k * n + k];
        for (int64_t i = 0; i < k; i++)
            for (int64_t j = 0; j <= i; j++) a[j * n + i] -= a[i * n + k] * a[j * n + k];
    }
    for (int64_t j = n - 1; j >= 0; j--) {
        for (int64_t i = j - 1; i >= 0; i--) {
            double sum = 0;
            for (int64_t k = i + 1; k < j; k++) sum -= a[i * n + k] * a[k * n + j];
            sum -= a[i * n + j] / a[j * n + j];
            a[i * n + j] = sum / a[i * n + i];
        }
        a[j * n + j] = 1 / a[j * n + j];
    }
    return true;
}

/* As if the inputs knew nothing of each other: quick. */
static bool factor_of_diagonal(void *user, int64_t n, double *a)
{
    (void)user;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i; j < n; j++) a[i * n + j] = i == j ? 1 / sqrt(a[i * n + i]) : 0;
    return true;
}

static bool stop_half_way(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    return 2 * done < total;
}

static qn_gptq_opts options(void)
{
    return (qn_gptq_opts){ .size = sizeof(qn_gptq_opts), .text = { text, TEXT_BYTES }, .n_ctx = CTX, .n_threads = 1, .linalg = { gram, factor, NULL } };
}

/* @param o  NULL: without GPTQ */
static qn_status quantize(const char *type, const qn_gptq_opts *o, const char *path, qn_err *err)
{
    qn_quantize *q = NULL;
    qn_gptq *g = NULL;
    qn_quantize_opts qo = QN_QUANTIZE_OPTS_INIT;
    qo.type = type;
    qo.n_threads = 1;
    qn_status s = qn_quantize_open(&q, source, &qo, err);
    if (s == QN_OK && o) s = qn_gptq_open(&g, q, source, o, err);
    if (s == QN_OK) s = qn_quantize_run(q, path, err);
    qn_gptq_close(&g);
    qn_quantize_close(&q);
    return s;
}

static float *logits_of(const char *path)
{
    static const char again[] = "the bath of that cat";
    int32_t ids[64];
    size_t n = 0;
    qn_model *m = NULL;
    qn_engine *e = NULL;
    qn_session *s = NULL;
    qn_err err;
    qn_engine_opts eo = QN_ENGINE_OPTS_INIT;
    eo.n_threads = 1;
    if (qn_model_open(&m, path, NULL, &err) || qn_engine_open(&e, m, &eo, &err) || qn_session_open(&s, e, &err)) fail_msg("%s", err.text);
    assert_int_equal(qn_tokenize(m, (qn_str){ again, sizeof again - 1 }, QN_TOK_SPECIAL, NULL, 0, ids, 64, &n, NULL), QN_OK);
    float *out = calloc(64, TINY_VOCAB * sizeof *out);
    assert_non_null(out);
    assert_int_equal(qn_session_eval_all(s, ids, (int32_t)n, out, NULL), QN_OK);
    qn_session_close(&s);
    qn_engine_close(&e);
    qn_model_close(&m);
    return out;
}

static double distance(const float *a, const float *b)
{
    double sum = 0;
    for (int i = 0; i < 64 * TINY_VOCAB; i++) sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sum;
}

static int64_t bytes_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return (int64_t)st.st_size;
}

static void nearer_to_the_source(void **state)
{
    (void)state;
    qn_err err;
    assert_true(tiny_model_write(source, "gemma3", 1, 4));
    float *want = logits_of(source);
    if (quantize("Q4_0", NULL, plain, &err)) fail_msg("%s", err.text);
    float *without = logits_of(plain);
    for (int ordered = 0; ordered < 2; ordered++) {
        qn_gptq_opts o = options();
        o.act_order = ordered;
        if (quantize("Q4_0", &o, better, &err)) fail_msg("%s", err.text);
        assert_int_equal(bytes_of(better), bytes_of(plain));
        float *with = logits_of(better);
        if (!(distance(with, want) < 0.9 * distance(without, want)))
            fail_msg("logits are off by %g, and %g without", distance(with, want), distance(without, want));
        free(with);
    }
    free(want);
    free(without);
    remove(plain);
    remove(better);
}

/* Tensors that several matrices share, keys that are values, tokens that see what follows: each becomes a whole file. */
static void many_architectures(void **state)
{
    static const char *const archs[] = { "phi3", "falcon", "glm4", "gemma4", "gemma3n", "bert", "deepseek2", "qwen3next", "granitehybrid", "llama+moe" };
    (void)state;
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
        qn_err err = { 0 };
        qn_gptq_opts o = options();
        o.linalg.factor = factor_of_diagonal;
        assert_true(tiny_model_write(source, archs[i], 1, 4));
        if (quantize("Q4_0", &o, better, &err)) fail_msg("%s: %s", archs[i], err.text);
        if (quantize("Q4_0", NULL, plain, &err)) fail_msg("%s: %s", archs[i], err.text);
        assert_int_equal(bytes_of(better), bytes_of(plain));
        unlink(better);
        unlink(plain);
    }
}

static void refusals(void **state)
{
    (void)state;
    qn_err err;
    assert_true(tiny_model_write(source, "llama", 1, 4));
    qn_gptq_opts o = options();
    o.linalg.factor = NULL;
    assert_int_equal(quantize("Q4_0", &o, better, &err), QN_ERR_ARG);
    o = options();
    o.text.len = 3;
    assert_int_equal(quantize("Q4_0", &o, better, &err), QN_ERR_ARG);
    assert_non_null(strstr(err.text, "at least one window of 48"));
    o = options();
    o.damping = 2;
    assert_int_equal(quantize("Q4_0", &o, better, &err), QN_ERR_ARG);
    o = options();
    o.linalg.factor = factor_of_diagonal;
    o.progress = stop_half_way;
    assert_int_equal(quantize("Q4_0", &o, better, &err), QN_ERR_CANCELLED);
    assert_int_equal(access(better, F_OK), -1);
}

static void failing_allocations(void **state)
{
    (void)state;
    assert_true(tiny_model_write(source, "qwen2", 1, 4)); /* each round loads a model: every allocation at first, then some */
    for (long n = 1;; n += 1 + n / 2) {
        qn_err err = { 0 };
        qn_gptq_opts o = options();
        o.n_chunks = 1;
        o.linalg.factor = factor_of_diagonal;
        test_fail_alloc_at(n);
        const qn_status s = quantize("Q4_0", &o, better, &err);
        const bool failed = test_alloc_has_failed();
        test_fail_alloc_at(0);
        if (!failed && s != QN_OK) fail_msg("nothing failed, and yet: %s", err.text);
        if (!failed) break;
        if (s != QN_OK && !err.text[0]) fail_msg("allocation %ld fails without a sentence (%s)", n, qn_status_name(s));
        if (s != QN_OK) assert_int_equal(access(better, F_OK), -1);
        remove(better);
    }
    remove(better);
}

int main(void)
{
    static const char *const word[] = { "the ", "cat ", "bath", "that ", "of ", "an ", "hot ", "tea, ", "this ", "other " };
    uint32_t x = 1;
    for (size_t n = 0; n < TEXT_BYTES;) {
        const char *w = word[(x = x * 1664525 + 1013904223) >> 8 & 7];
        for (; *w && n < TEXT_BYTES; w++) text[n++] = *w;
    }
    snprintf(source, sizeof source, "/tmp/quern-gptq-%ld.gguf", (long)getpid());
    snprintf(plain, sizeof plain, "/tmp/quern-gptq-%ld.plain.gguf", (long)getpid());
    snprintf(better, sizeof better, "/tmp/quern-gptq-%ld.better.gguf", (long)getpid());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearer_to_the_source), cmocka_unit_test(many_architectures),
        cmocka_unit_test(refusals),
        cmocka_unit_test(failing_allocations),
    };
    const int code = cmocka_run_group_tests(tests, NULL, NULL);
    remove(source);
    return code;
}

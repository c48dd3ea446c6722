/* Promises 1 and 2: the same bits for every number of threads, cut of the prompt, level, cached prefix and neighbour; over every
 * registered architecture and every format with kernels. */
#include "models/model.h"
#include "quant/quant.h"
#include "src/run/engine.h"
#include "tests/common/tiny_model.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { N_TURNS = 4, N_TOKENS = 45, N_LOGITS = N_TOKENS * TINY_VOCAB };

static char path[64];

static void make_tokens(int32_t *ids, uint32_t seed)
{
    for (int i = 0; i < N_TOKENS; i++) {
        seed = seed * 1664525u + 1013904223u;
        ids[i] = (int32_t)((seed >> 8) % TINY_VOCAB);
    }
}

static qn_model *open_model(void)
{
    qn_model *m = NULL;
    qn_err err = { 0 };
    qn_model_opts o = QN_MODEL_OPTS_INIT;
    o.n_threads = 2;
    if (qn_model_open(&m, path, &o, &err) != QN_OK) fail_msg("%s", err.text);
    return m;
}

static qn_engine *open_engine_ctx(const qn_model *m, int32_t n_threads, int32_t n_chunk, const char *cpu, int32_t n_ctx)
{
    qn_engine *e = NULL;
    qn_err err = { 0 };
    qn_engine_opts o = QN_ENGINE_OPTS_INIT;
    o.n_sessions = 2;
    o.n_chunk = n_chunk;
    o.n_ctx = n_ctx;
    o.cpu = cpu;
    o.exact = true;
    if (qn_engine_open_threads(&e, m, &o, n_threads, &err) != QN_OK) fail_msg("%s", err.text);
    return e;
}

static qn_engine *open_engine(const qn_model *m, int32_t n_threads, int32_t n_chunk, const char *cpu)
{
    return open_engine_ctx(m, n_threads, n_chunk, cpu, 128);
}

static qn_session *open_session(qn_engine *e)
{
    qn_session *s = NULL;
    assert_int_equal(qn_session_open(&s, e, NULL), QN_OK);
    return s;
}

static void eval_all(const qn_model *m, const int32_t *ids, int32_t n_threads, int32_t n_chunk, const char *cpu, float *logits)
{
    qn_engine *e = open_engine(m, n_threads, n_chunk, cpu);
    qn_session *s = open_session(e);
    qn_err err = { 0 };
    if (qn_session_eval_all(s, ids, N_TOKENS, logits, &err) != QN_OK) fail_msg("%s", err.text);
    qn_session_close(&s);
    qn_engine_close(&e);
}

static void assert_same(const float *a, const float *b, size_t n, const char *what, const char *arch, const char *fmt)
{
    if (memcmp(a, b, n * sizeof *a)) fail_msg("%s %s: other bits for %s", arch, fmt, what);
}

static bool has_feature(const char *arch, uint64_t feature)
{
    const qn_arch *a = qn_arch_find((qn_str){ arch, strlen(arch) });
    return a && a->features & feature; /* a variant of the tests' own has none of these */
}

/* An encoder reads a text in one step. */
static bool is_encoder(const char *arch)
{
    return has_feature(arch, QN_F_ENCODER);
}

static float expected[N_LOGITS], got[N_LOGITS];

static void check_model(const char *arch, int32_t fmt_id)
{
    const char *fmt = qn_fmt_by_id(fmt_id)->name;
    int32_t ids[N_TOKENS];
    const char *levels[16];
    make_tokens(ids, 7);
    assert_true(tiny_model_write(path, arch, fmt_id, 3));
    qn_model *m = open_model();
    eval_all(m, ids, 1, 128, "scalar", expected);
    float largest = 0;
    for (int i = 0; i < N_LOGITS; i++) {
        const float a = expected[i] < 0 ? -expected[i] : expected[i];
        if (!(a < 1e6f)) fail_msg("%s %s: logit %d is %g", arch, fmt, i, (double)expected[i]);
        if (a > largest) largest = a;
    }
    if (!(largest > 0.01f)) fail_msg("%s %s: all logits are about zero", arch, fmt);
    const int32_t n_levels = qn_cpu_levels(levels, 16);
    for (int32_t l = 1; l < n_levels; l++) {
        char what[64];
        snprintf(what, sizeof what, "level %s", levels[l]);
        eval_all(m, ids, 2, 128, levels[l], got);
        assert_same(expected, got, N_LOGITS, what, arch, fmt);
    }
    static const int32_t chunks[] = { 1, 7, 16, 33 };
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks && !is_encoder(arch); i++) {
        char what[64];
        snprintf(what, sizeof what, "chunks of %d on %d threads", chunks[i], (int)i % 3 + 1);
        eval_all(m, ids, (int32_t)i % 3 + 1, chunks[i], NULL, got);
        assert_same(expected, got, N_LOGITS, what, arch, fmt);
    }
    qn_model_close(&m);
}

static void same_bits(void **state)
{
    (void)state;
    const int32_t *types;
    const int32_t n = tiny_model_formats(&types);
    char arch[64];
    for (int32_t a = 0; tiny_model_name(a, arch); a++) /* all formats by turns, so that each meets many architectures and each architecture three */
        for (int32_t i = a % N_TURNS; i < n; i += N_TURNS) check_model(arch, types[i]);
}

/* Every pair of cache formats: the same bits for every level, cut of the prompt and number of threads, one token at a time too. */
static void cache_types(void **state)
{
    (void)state;
    static const char *const archs[] = { "llama", "gemma3", "mpt" }; /* as they are, with windows, with position biases */
    const char *types[16], *levels[16];
    const int32_t n = qn_cache_types(types, 16), n_levels = qn_cpu_levels(levels, 16);
    int32_t ids[N_TOKENS];
    make_tokens(ids, 13);
    assert_int_equal(n, 5);
    for (int32_t i = 0; i < n * n * (n_levels + 3); i++) {
        const char *k = types[i % n], *v = types[i / n % n];
        const int32_t way = i / (n * n), turn = way - n_levels;
        static float first[25][N_LOGITS];
        char what[96];
        snprintf(what, sizeof what, "keys in %s, values in %s", k, v);
        assert_true(tiny_model_write(path, archs[i % (n * n) % 3], 8, 4));
        qn_model *m = open_model();
        qn_engine *e = NULL;
        qn_engine_opts o = QN_ENGINE_OPTS_INIT;
        o.n_ctx = 128;
        o.n_chunk = turn < 0 ? 128 : turn == 0 ? 1 : turn == 1 ? 7 : 33;
        o.cpu = way < n_levels ? levels[way] : NULL;
        o.exact = true;
        o.cache_type_k = k;
        o.cache_type_v = v;
        assert_int_equal(qn_engine_open_threads(&e, m, &o, 1 + way % 3, NULL), QN_OK);
        qn_session *s = open_session(e);
        assert_int_equal(qn_session_eval_all(s, ids, N_TOKENS, way ? got : first[i % (n * n)], NULL), QN_OK);
        if (way) assert_same(first[i % (n * n)], got, N_LOGITS, what, way < n_levels ? levels[way] : "chunks", "Q8_0");
        qn_session_close(&s);
        qn_engine_close(&e);
        qn_model_close(&m);
    }
}

/* Attention over several parts: many tokens at once, one at a time with the parts shared out over threads, and chunks that end anywhere. */
static void long_contexts(void **state)
{
    (void)state;
    enum { N = 600 };
    static const struct {
        int32_t n_threads, n_chunk;
    } ways[] = { { 1, 512 }, { 2, 1 }, { 3, 3 }, { 3, 100 }, { 2, 257 } };
    static float all[2][N * TINY_VOCAB];
    static int32_t ids[N];
    for (int32_t i = 0; i < N; i++) ids[i] = (i * 7919 + 11) % TINY_VOCAB;
    char arch[64];
    for (int32_t a = 0; tiny_model_name(a, arch); a++) {
        if (is_encoder(arch) || has_feature(arch, QN_F_POSITIONS)) continue; /* no longer than trained */
        assert_true(tiny_model_write(path, arch, 8, 9));
        qn_model *m = open_model();
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            if (i && i % N_TURNS != (size_t)a % N_TURNS) continue;
            qn_engine *e = open_engine_ctx(m, ways[i].n_threads, ways[i].n_chunk, NULL, N + 10);
            qn_session *s = open_session(e);
            assert_int_equal(qn_session_eval_all(s, ids, N, all[i > 0], NULL), QN_OK);
            if (i) assert_same(all[0], all[1], N * TINY_VOCAB, "a long context", arch, "Q8_0");
            qn_session_close(&s);
            qn_engine_close(&e);
        }
        qn_model_close(&m);
    }
}

/* Going back and taking another way gives what a fresh session gives, and a window that was overwritten is not gone back to. */
static void rewound_prefix(void **state)
{
    (void)state;
    char arch[64];
    for (int32_t a = 0; tiny_model_name(a, arch); a++) {
        int32_t one[N_TOKENS], two[N_TOKENS];
        if (is_encoder(arch)) continue;
        make_tokens(one, 1);
        make_tokens(two, 2);
        assert_true(tiny_model_write(path, arch, 8, 5));
        qn_model *m = open_model();
        for (int32_t same = 0; same <= 40; same += 10) {
            qn_engine *e = open_engine(m, 2, 8, NULL);
            qn_session *s = open_session(e), *fresh = open_session(e);
            memcpy(two, one, (size_t)same * sizeof *one);
            assert_int_equal(qn_session_eval(s, one, N_TOKENS, got, NULL), QN_OK);
            const int32_t kept = qn_session_rewind(s, two, N_TOKENS);
            assert_true(kept == same || (kept >= 0 && kept < same) || (kept > same && two[same] == one[same]));
            assert_int_equal(qn_session_position(s), kept);
            assert_int_equal(qn_session_eval(s, two + kept, N_TOKENS - kept, got, NULL), QN_OK);
            assert_int_equal(qn_session_eval(fresh, two, N_TOKENS, expected, NULL), QN_OK);
            assert_same(expected, got, TINY_VOCAB, "a rewound session", arch, "Q8_0");
            qn_session_close(&s);
            qn_session_close(&fresh);
            qn_engine_close(&e);
        }
        qn_model_close(&m);
    }
}

typedef struct solo {
    const qn_model *model;
    uint32_t seed;
    float logits[TINY_VOCAB];
} solo;

static void *run_solo(void *arg)
{
    solo *w = arg;
    int32_t ids[N_TOKENS];
    make_tokens(ids, w->seed);
    qn_engine_opts o = QN_ENGINE_OPTS_INIT;
    qn_engine *e = NULL;
    qn_session *s = NULL;
    o.n_threads = 2;
    o.n_chunk = 8;
    if (qn_engine_open(&e, w->model, &o, NULL) == QN_OK && qn_session_open(&s, e, NULL) == QN_OK)
        (void)qn_session_eval(s, ids, N_TOKENS, w->logits, NULL);
    qn_session_close(&s);
    qn_engine_close(&e);
    return NULL;
}

static void engines_side_by_side(void **state)
{
    (void)state;
    assert_true(tiny_model_write(path, "llama", 12, 9));
    qn_model *m = open_model();
    static solo alone[2], together[2];
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) {
        alone[i] = together[i] = (solo){ .model = m, .seed = (uint32_t)i + 1 };
        run_solo(&alone[i]);
    }
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&thread[i], NULL, run_solo, &together[i]), 0);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < 2; i++) assert_same(alone[i].logits, together[i].logits, TINY_VOCAB, "engines side by side", "llama", "Q4_K");
    qn_model_close(&m);
}

static void refusals(void **state)
{
    (void)state;
    assert_true(tiny_model_write(path, "llama", 8, 1));
    qn_model *m = open_model();
    qn_engine *e = open_engine(m, 1, 8, NULL);
    qn_session *s = open_session(e);
    qn_err err = { 0 };
    int32_t ids[200] = { 0 };
    assert_int_equal(qn_session_eval(s, ids, 0, got, &err), QN_ERR_ARG);
    assert_int_equal(qn_session_eval(s, ids, 129, got, &err), QN_ERR_CTX_FULL);
    assert_int_equal(qn_session_position(s), 0);
    ids[3] = TINY_VOCAB;
    assert_int_equal(qn_session_eval(s, ids, 8, got, &err), QN_ERR_ARG);
    ids[3] = -1;
    assert_int_equal(qn_session_eval(s, ids, 8, got, &err), QN_ERR_ARG);
    ids[3] = 5;
    qn_session_cancel(s);
    assert_int_equal(qn_session_eval(s, ids, 8, got, &err), QN_ERR_CANCELLED);
    assert_int_equal(qn_session_eval(s, ids, 8, got, &err), QN_OK); /* a cancel counts once */
    assert_int_equal(qn_session_position(s), 8);
    qn_session_close(&s);
    qn_engine_close(&e);
    qn_engine_opts o = QN_ENGINE_OPTS_INIT;
    o.cpu = "abacus";
    assert_int_equal(qn_engine_open(&e, m, &o, &err), QN_ERR_ARG);
    assert_null(e);
    o = (qn_engine_opts)QN_ENGINE_OPTS_INIT;
    o.cache_type_v = "Q5_K";
    assert_int_equal(qn_engine_open(&e, m, &o, &err), QN_ERR_ARG);
    assert_non_null(strstr(err.text, "'Q5_K'"));
    assert_non_null(strstr(err.text, "Q8_0"));
    o = (qn_engine_opts)QN_ENGINE_OPTS_INIT;
    o.n_ctx = -5;
    assert_int_equal(qn_engine_open(&e, m, &o, &err), QN_ERR_ARG);
    qn_model_close(&m);
    assert_int_equal(qn_model_open(&m, "/nonexistent/model.gguf", NULL, &err), QN_ERR_IO);
}

int main(int argc, char **argv)
{
    if (argc > 1) tiny_model_choose(argv + 1);
    snprintf(path, sizeof path, "/tmp/quern-tiny-%ld.gguf", (long)getpid());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(cache_types),
        cmocka_unit_test(long_contexts),
        cmocka_unit_test(rewound_prefix),
        cmocka_unit_test(engines_side_by_side),
        cmocka_unit_test(refusals),
    };
    const int code = cmocka_run_group_tests(tests, NULL, NULL);
    remove(path);
    return code;
}

/* The sampler chain against distributions computed apart from it, draws against probabilities, and every option's off value. */
#include "src/sample/explog.h"
#include "src/sample/sampler.h"
#include "tests/common/fault.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

typedef struct golden_case {
    int32_t i_logits, i_history;
    qn_sample_opts o;
    const char *breaker;  /* "": the standard ones */
    int32_t biased;
    double p[24];
} golden_case;
#include "tests/data/sampling_golden.inc"

enum { N = 24 };

static qn_status golden_text(const void *user, int32_t id, qn_str *out)
{
    (void)user;
    *out = (qn_str){ golden_texts[id], strlen(golden_texts[id]) };
    return QN_OK;
}

static qn_status no_text(const void *user, int32_t id, qn_str *out)
{
    (void)user;
    (void)id;
    *out = QN_LIT("x");
    return QN_OK;
}

static const qn_sample_vocab small = { N, golden_text, NULL };

static qn_sampler *open_sampler(const qn_sample_vocab *v, const qn_sample_opts *o)
{
    qn_sampler *s;
    qn_err err = { 0 };
    if (qn_sampler_open_vocab(&s, v, o, &err) != QN_OK) fail_msg("%s", err.text);
    return s;
}

static int32_t pick(qn_sampler *s, const float *logits)
{
    int32_t token = -1;
    qn_err err = { 0 };
    if (qn_sampler_pick(s, logits, &token, &err) != QN_OK) fail_msg("%s", err.text);
    return token;
}

static void test_golden(void **state)
{
    (void)state;
    static const qn_logit_bias bias[] = { { 3, 2.5f }, { 7, -INFINITY }, { 3, -1.0f } };
    for (size_t i = 0; i < sizeof golden_cases / sizeof *golden_cases; i++) {
        const golden_case *g = &golden_cases[i];
        qn_sample_opts o = g->o;
        if (g->biased) {
            o.bias = bias;
            o.n_bias = 3;
        }
        if (*g->breaker) {
            o.dry_breakers = &g->breaker;
            o.n_dry_breakers = 1;
        }
        qn_sampler *s = open_sampler(&small, &o);
        for (const int32_t *t = golden_history[g->i_history]; *t >= 0; t++) qn_sampler_accept(s, *t);
        const qn_cands *c;
        assert_int_equal(qn_sampler_weigh(s, golden_logits[g->i_logits], &c, NULL), QN_OK);
        double p[N] = { 0 };
        for (int32_t k = 0; k < c->n; k++) p[qn_cands_id(c, k)] = c->p[k];
        for (int k = 0; k < N; k++)
            if (fabs(p[k] - g->p[k]) > 3e-6) fail_msg("case %zu, token %d: %.9g, expected %.9g", i, k, p[k], g->p[k]);
        qn_sampler_close(&s);
        assert_null(s);
    }
}

/* Pearson's statistic of 60000 draws; its 0.999 quantile for at most 23 degrees of freedom is below 50. */
static void test_draws_follow_probabilities(void **state)
{
    (void)state;
    const golden_case *g;
    for (size_t i = 0; i < sizeof golden_cases / sizeof *golden_cases; i += 17) {
        g = &golden_cases[i];
        if (g->biased || *g->breaker || g->o.mirostat || g->i_history != 4) continue;
        qn_sample_opts o = g->o;
        o.seed = 7 + i;
        qn_sampler *s = open_sampler(&small, &o);
        const int n = 60000;
        int seen[N] = { 0 };
        for (int k = 0; k < n; k++) seen[pick(s, golden_logits[g->i_logits])]++;
        double chi = 0;
        for (int k = 0; k < N; k++) {
            const double want = g->p[k] * n;
            if (g->p[k] == 0) assert_int_equal(seen[k], 0);
            else if (want > 0.5) chi += (seen[k] - want) * (seen[k] - want) / want;
        }
        if (chi > 50) fail_msg("case %zu: chi-square %.1f", i, chi);
        qn_sampler_close(&s);
    }
}

static void stream(const qn_sample_opts *o, int32_t *out, int n)
{
    qn_sampler *s = open_sampler(&small, o);
    for (int i = 0; i < n; i++) {
        out[i] = pick(s, golden_logits[i & 1]);
        qn_sampler_accept(s, out[i]);
    }
    qn_sampler_close(&s);
}

static void test_seed_replays(void **state)
{
    (void)state;
    qn_sample_opts o;
    int32_t a[200], b[200];
    qn_sample_opts_init(&o);
    o.temperature = 2;
    qn_sampler *s = open_sampler(&small, &o);
    const uint64_t seed = qn_sampler_seed(s);
    assert_true(seed < (uint64_t)1 << 53);
    for (int i = 0; i < 200; i++) a[i] = pick(s, golden_logits[1]);
    qn_sampler_reset(s);
    for (int i = 0; i < 200; i++) b[i] = pick(s, golden_logits[1]);
    assert_memory_equal(a, b, sizeof a);
    qn_sampler_close(&s);

    o.seed = seed; /* as read back */
    s = open_sampler(&small, &o);
    assert_int_equal(qn_sampler_seed(s), seed);
    for (int i = 0; i < 200; i++) b[i] = pick(s, golden_logits[1]);
    assert_memory_equal(a, b, sizeof a);
    qn_sampler_close(&s);

    o.seed = seed + 1;
    stream(&o, b, 200);
    o.seed = seed;
    stream(&o, a, 200);
    assert_memory_not_equal(a, b, sizeof a);
    o.seed = QN_SEED_RANDOM;
    qn_sampler *t = open_sampler(&small, &o);
    assert_int_not_equal(qn_sampler_seed(t), seed);
    qn_sampler_close(&t);
}

/* One stream for seed 42 on every machine: default options, logits 0 and 1 by turns. */
static void test_stream_is_fixed(void **state)
{
    (void)state;
    qn_sample_opts o;
    int32_t got[16];
    qn_sample_opts_init(&o);
    o.seed = 42;
    o.temperature = 1.5f;
    stream(&o, got, 16);
    static const int32_t want[16] = { 16, 9, 16, 23, 23, 15, 19, 20, 19, 13, 16, 5, 19, 7, 16, 22 };
    for (int i = 0; i < 16; i++) assert_int_equal(got[i], want[i]);
}

static void test_off_values(void **state)
{
    (void)state;
    qn_sample_opts base = { .size = sizeof base, .seed = 5, .temperature = 1.3f };
    int32_t want[100], got[100];
    stream(&base, want, 100);
#define SAME(...)                                                            \
    do {                                                                     \
        qn_sample_opts o = { .size = sizeof o, .seed = 5, .temperature = 1.3f, __VA_ARGS__ }; \
        stream(&o, got, 100);                                                \
        assert_memory_equal(want, got, sizeof want);                         \
    } while (0)
    SAME(.top_k = N);
    SAME(.top_k = INT32_MAX);
    SAME(.top_p = 1);
    SAME(.typical_p = 1);
    SAME(.dyn_temp_exponent = 3);
    SAME(.xtc_probability = 1, .xtc_threshold = 0.51f);
    SAME(.xtc_threshold = 0.2f);
    SAME(.repeat_penalty = 1, .penalty_last_n = -1);
    SAME(.repeat_penalty = 0, .penalty_last_n = 64);
    SAME(.repeat_penalty = 2, .frequency_penalty = 1, .presence_penalty = 1, .penalty_last_n = 0);
    SAME(.dry_base = 3, .dry_allowed_length = 1, .dry_last_n = -1);
    SAME(.dry_multiplier = 2, .dry_last_n = 0);
    SAME(.mirostat_tau = 2, .mirostat_eta = 0.5f);
    SAME(.order = "temperature");
    SAME(.min_p = 1e-30f);
    SAME(.top_n_sigma = 1e5f);
#undef SAME
    /* temperature 1 is the same as none in the order */
    qn_sample_opts one = { .size = sizeof one, .seed = 5, .temperature = 1 }, none = one;
    none.order = "";
    stream(&one, want, 100);
    stream(&none, got, 100);
    assert_memory_equal(want, got, sizeof want);
    /* options of an older, shorter header */
    qn_sample_opts cut = base;
    cut.size = offsetof(qn_sample_opts, order);
    cut.order = "not read";
    stream(&base, want, 100);
    stream(&cut, got, 100);
    assert_memory_equal(want, got, sizeof want);
}

static void test_defaults(void **state)
{
    (void)state;
    qn_sample_opts o;
    qn_sample_opts_init(&o);
    assert_true(o.repeat_penalty == 1 && o.frequency_penalty == 0 && o.presence_penalty == 0 && o.dry_multiplier == 0);
    assert_string_equal(qn_sampler_default_order(), "penalties;dry;top_n_sigma;top_k;typical_p;top_p;min_p;xtc;temperature");
    int32_t a[50], b[50];
    o.seed = 3;
    stream(&o, a, 50);
    o.order = qn_sampler_default_order();
    stream(&o, b, 50);
    assert_memory_equal(a, b, sizeof a);
}

static void test_top_k_zero_is_off(void **state)
{
    (void)state;
    qn_sample_opts o = { .size = sizeof o, .temperature = 1.5f };
    int32_t got[20];
    bool differs = false;
    for (o.seed = 1; o.seed <= 5; o.seed++) {
        stream(&o, got, 20);
        for (int i = 2; i < 20; i++) differs |= got[i] != got[i & 1];
    }
    assert_true(differs);
}

static void test_greedy(void **state)
{
    (void)state;
    float logits[N] = { 1, 5, 2, 5, 5 };
    qn_sample_opts o = { .size = sizeof o };
    static const float cold[] = { 0, 1e-7f, 1e-6f };
    for (size_t i = 0; i < 3; i++) {
        o.temperature = cold[i];
        o.xtc_probability = 1;
        o.top_p = 0.1f;
        qn_sampler *s = open_sampler(&small, &o);
        assert_int_equal(pick(s, logits), 1);
        qn_sampler_close(&s);
    }
    qn_sample_opts p = { .size = sizeof p, .repeat_penalty = 2, .penalty_last_n = 4 };
    qn_sampler *s = open_sampler(&small, &p);
    qn_sampler_accept(s, 1);
    assert_int_equal(pick(s, logits), 3); /* penalties act on greedy choice */
    qn_sampler_accept(s, 3);
    qn_sampler_accept(s, 4);
    assert_int_equal(pick(s, logits), 1); /* all three are at 2.5 */
    for (int i = 0; i < 4; i++) qn_sampler_accept(s, 20);
    assert_int_equal(pick(s, logits), 1); /* the window has moved on */
    qn_sampler_accept(s, 1);
    assert_int_equal(pick(s, logits), 3);
    qn_sampler_close(&s);

    logits[1] = -0.0f;
    logits[3] = 0.0f;
    for (int i = 0; i < N; i++)
        if (i != 1 && i != 3) logits[i] = -1;
    o = (qn_sample_opts){ .size = sizeof o };
    s = open_sampler(&small, &o);
    assert_int_equal(pick(s, logits), 1); /* -0 equals 0: the lower id */
    qn_sampler_close(&s);
    /* a tiny temperature above the cut-off neither overflows nor leaves the best */
    o.temperature = 2e-6f;
    s = open_sampler(&small, &o);
    logits[9] = 3e38f;
    assert_int_equal(pick(s, logits), 9);
    qn_sampler_close(&s);
}

static void expect_numeric(const qn_sample_opts *o, const float *logits)
{
    qn_sampler *s = open_sampler(&small, o);
    qn_err err = { 0 };
    int32_t token;
    assert_int_equal(qn_sampler_pick(s, logits, &token, &err), QN_ERR_NUMERIC);
    assert_true(err.text[0]);
    float good[N] = { 0 };
    good[4] = 50;
    if (!o->n_bias) assert_int_equal(pick(s, good), 4); /* it goes on after a bad step */
    qn_sampler_close(&s);
}

static void test_numeric_faults(void **state)
{
    (void)state;
    for (int hot = 0; hot < 2; hot++) {
        qn_sample_opts o = { .size = sizeof o, .temperature = (float)hot };
        float x[N] = { 0 };
        x[11] = NAN;
        expect_numeric(&o, x);
        x[11] = -NAN;
        expect_numeric(&o, x);
        x[11] = INFINITY;
        expect_numeric(&o, x);
        for (int i = 0; i < N; i++) x[i] = -INFINITY;
        expect_numeric(&o, x);
        x[6] = -3e38f;
        qn_sampler *s = open_sampler(&small, &o);
        assert_int_equal(pick(s, x), 6);
        qn_sampler_close(&s);
        qn_logit_bias ban[N];
        for (int i = 0; i < N; i++) ban[i] = (qn_logit_bias){ i, -INFINITY };
        o.bias = ban;
        o.n_bias = N;
        float zero[N] = { 0 };
        expect_numeric(&o, zero);
        o.n_bias = N - 1;
        s = open_sampler(&small, &o);
        for (int i = 0; i < 5; i++) assert_int_equal(pick(s, zero), N - 1);
        qn_sampler_close(&s);
    }
    /* numbers at the end of float's range stay finite through every sampler */
    qn_sample_opts o = { .size = sizeof o, .seed = 1, .temperature = 1e-5f, .dyn_temp_range = 1e-5f, .top_p = 0.9f, .min_p = 0.01f,
                         .typical_p = 0.9f, .top_n_sigma = 1, .xtc_probability = 0.5f, .repeat_penalty = 1e6f, .frequency_penalty = 1e6f,
                         .penalty_last_n = -1, .dry_multiplier = 1e6f, .dry_base = 1e6f, .dry_last_n = -1 };
    qn_sampler *s = open_sampler(&small, &o);
    float x[N];
    for (int i = 0; i < N; i++) x[i] = i & 1 ? 3.4e38f : -3.4e38f;
    for (int i = 0; i < 100; i++) {
        const int32_t t = pick(s, x);
        assert_in_range(t, 0, N - 1);
        qn_sampler_accept(s, t);
    }
    qn_sampler_close(&s);
}

static void expect_refused(const qn_sample_opts *o, const char *name)
{
    qn_sampler *s = (qn_sampler *)1;
    qn_err err = { 0 };
    assert_int_equal(qn_sampler_open_vocab(&s, &small, o, &err), QN_ERR_ARG);
    assert_null(s);
    if (!strstr(err.text, name)) fail_msg("'%s' does not name %s", err.text, name);
}

static void test_refused_options(void **state)
{
    (void)state;
#define BAD(name, ...)                                               \
    do {                                                             \
        qn_sample_opts o = { .size = sizeof o, __VA_ARGS__ };        \
        expect_refused(&o, name);                                    \
    } while (0)
    BAD("temperature", .temperature = -1);
    BAD("temperature", .temperature = NAN);
    BAD("temperature", .temperature = INFINITY);
    BAD("dyn_temp_range", .dyn_temp_range = -1);
    BAD("dyn_temp_exponent", .dyn_temp_exponent = NAN);
    BAD("top_k", .top_k = -1);
    BAD("top_p", .top_p = 1.5f);
    BAD("top_p", .top_p = NAN);
    BAD("min_p", .min_p = -0.5f);
    BAD("typical_p", .typical_p = 2);
    BAD("top_n_sigma", .top_n_sigma = -1);
    BAD("xtc_probability", .xtc_probability = 1.1f);
    BAD("xtc_threshold", .xtc_threshold = -0.1f);
    BAD("repeat_penalty", .repeat_penalty = -1);
    BAD("frequency_penalty", .frequency_penalty = NAN);
    BAD("presence_penalty", .presence_penalty = INFINITY);
    BAD("penalty_last_n", .penalty_last_n = -2);
    BAD("dry_multiplier", .dry_multiplier = -1);
    BAD("dry_base", .dry_base = 0.5f);
    BAD("dry_allowed_length", .dry_allowed_length = -1);
    BAD("dry_last_n", .dry_last_n = -2);
    BAD("mirostat", .mirostat = 1);
    BAD("mirostat_tau", .mirostat_tau = -1);
    BAD("mirostat_eta", .mirostat_eta = NAN);
    BAD("rep_pen", .order = "top_k;rep_pen");
    BAD("top_k", .order = "top_k;temperature;top_k");
    BAD("order", .order = "top_k;");
    BAD("order", .order = ";");
    BAD("order", .order = "top_k;;top_p");
    const char *empty = "";
    BAD("dry_breakers", .dry_multiplier = 1, .dry_last_n = -1, .dry_breakers = &empty, .n_dry_breakers = 1);
    const qn_logit_bias bad[] = { { -1, 0 }, { N, 0 }, { 2, NAN }, { 2, INFINITY } };
    for (size_t i = 0; i < 4; i++) BAD("bias", .bias = &bad[i], .n_bias = 1);
    BAD("bias", .n_bias = 1);
#undef BAD
    qn_sample_opts unset = { 0 };
    expect_refused(&unset, "size");
}

static void test_random_vectors(void **state)
{
    (void)state;
    /* the generator from state 1, 2, 3, 4, as its authors' code gives it */
    qn_random r = { { 1, 2, 3, 4 } };
    static const uint64_t want[] = { 11520, 0, 1509978240, 1215971899390074240u, 1216172134540287360u };
    for (size_t i = 0; i < 5; i++) assert_true(qn_random_next(&r) == want[i]);
    /* SplitMix64 from 1234567 */
    qn_random_seed(&r, 1234567);
    assert_true(r.s[0] == 6457827717110365317u && r.s[1] == 3203168211198807973u && r.s[2] == 9817491932198370423u);
    for (int i = 0; i < 1000; i++) {
        const double u = qn_random_unit(&r);
        assert_true(u >= 0 && u < 1);
    }
}

static void test_explog(void **state)
{
    (void)state;
    for (double x = -707; x < 700; x += 0.0137) {
        const double want = exp(x);
        assert_true(fabs(qn_exp(x) - want) <= 6e-16 * want);
    }
    assert_true(qn_exp(0) == 1 && qn_exp(-800) == 0 && qn_exp(-INFINITY) == 0);
    for (double x = 1e-300; x < 1e300; x *= 1.0173) assert_true(fabs(qn_log(x) - log(x)) <= 4e-16 * fabs(log(x)) + 1e-16);
    assert_true(qn_log(1) == 0);
    assert_true(fabs(qn_pow(1.75, 10) - 269.38938999176025) < 1e-11 && qn_pow(10, 400) == 1e300);
}

/* Against sorting, at the size of a large vocabulary, with many equal logits. */
typedef struct ref {
    float logit;
    int32_t id;
} ref;

static int by_rank(const void *a, const void *b)
{
    const ref *x = a, *y = b;
    return x->logit != y->logit ? (x->logit < y->logit) - (x->logit > y->logit) : (x->id > y->id) - (x->id < y->id);
}

static void test_selection_equals_sorting(void **state)
{
    (void)state;
    enum { V = 262144 };
    static qn_extremes group[V / QN_RANK_GROUP];
    float *logits = malloc(V * sizeof *logits);
    ref *sorted = malloc(V * sizeof *sorted);
    char *in = malloc(V);
    qn_cands c;
    assert_true(logits && sorted && in && qn_cands_open(&c, V, NULL) == QN_OK);
    for (int kind = 0; kind < 4; kind++) {
        qn_random r;
        qn_random_seed(&r, (uint64_t)kind);
        for (int32_t i = 0; i < V; i++) {
            const double u = qn_random_unit(&r);
            logits[i] = kind == 0 ? (float)(20 * u - 12) : kind == 1 ? (float)(int)(9 * u) : kind == 2 ? (float)i / 999 : (float)-i;
            sorted[i] = (ref){ logits[i], i };
        }
        qsort(sorted, V, sizeof *sorted, by_rank);
        static const int32_t ks[] = { 1, 2, 40, 256, 257, 5000, V - 1 };
        for (int32_t i = 0; i < V; i += QN_RANK_GROUP) group[i / QN_RANK_GROUP] = qn_extremes_of(logits + i, QN_RANK_GROUP);
        for (size_t k = 0; k < 2 * sizeof ks / sizeof *ks; k++) {
            const int32_t want = ks[k / 2];
            assert_int_equal(qn_cands_begin(&c, logits, k % 2 ? group : NULL, NULL), QN_OK);
            assert_int_equal(qn_cands_argmax(&c), sorted[0].id);
            qn_cut_top_k(&c, want);
            assert_int_equal(c.n, want);
            memset(in, 0, V);
            for (int32_t i = 0; i < want; i++) in[sorted[i].id] = 1;
            for (int32_t i = 0; i < c.n; i++) {
                assert_true(in[qn_cands_id(&c, i)] && logits[qn_cands_id(&c, i)] == c.logit[i]);
                if (i) assert_true(qn_cands_id(&c, i) > qn_cands_id(&c, i - 1));
            }
        }
        for (int at = 0; at < 4; at++) {
            static const float ps[] = { 0.001f, 0.5f, 0.9f, 0.9999f };
            assert_int_equal(qn_cands_begin(&c, logits, NULL, NULL), QN_OK);
            const qn_softmax sm = qn_cands_softmax(&c);
            double sum = 0;
            int32_t n = 0;
            while (n < V && sum < (double)ps[at]) sum += exp((double)sorted[n++].logit - (double)sm.max - sm.log_sum);
            qn_cut_top_p(&c, ps[at]);
            assert_true(abs(c.n - n) <= 1); /* the sums round differently */
        }
    }
    qn_cands_close(&c);
    free(logits);
    free(sorted);
    free(in);
}

static void test_xtc_rate(void **state)
{
    (void)state;
    qn_sample_opts o = { .size = sizeof o, .seed = 11, .temperature = 1, .xtc_probability = 0.25f, .xtc_threshold = 0.1f };
    float x[N];
    for (int i = 0; i < N; i++) x[i] = i < 2 ? 10 : -20; /* two choices of one half each; with XTC only the second */
    qn_sampler *s = open_sampler(&small, &o);
    int first = 0;
    for (int i = 0; i < 40000; i++) first += pick(s, x) == 0;
    assert_in_range(first, 14500, 15500); /* 40000 * 0.75 / 2, deviation 97 */
    qn_sampler_close(&s);
}

static void test_mirostat_reaches_its_target(void **state)
{
    (void)state;
    enum { V = 2000 };
    static float x[V];
    const qn_sample_vocab v = { V, no_text, NULL };
    for (int i = 0; i < V; i++) x[i] = (float)(-1.1 * log(i + 1)); /* Zipf */
    qn_cands c;
    assert_int_equal(qn_cands_open(&c, V, NULL), QN_OK);
    assert_int_equal(qn_cands_begin(&c, x, NULL, NULL), QN_OK);
    const qn_softmax sm = qn_cands_softmax(&c);
    static const float taus[] = { 3, 4, 5.5f };
    for (size_t k = 0; k < 3; k++) {
        qn_sample_opts o = { .size = sizeof o, .seed = 3, .temperature = 1, .mirostat = 2, .mirostat_tau = taus[k] };
        qn_sampler *s = open_sampler(&v, &o);
        double sum = 0;
        for (int i = 0; i < 5000; i++) {
            const int32_t t = pick(s, x);
            if (i >= 1000) sum += ((double)sm.max + sm.log_sum - (double)x[t]) * QN_LOG2_E;
        }
        assert_true(fabs(sum / 4000 - (double)taus[k]) < 0.1);
        qn_sampler_close(&s);
    }
    qn_cands_close(&c);
}

/* Worst cases for looking back: one token over and over, and a short window over many tokens. */
static void test_long_history(void **state)
{
    (void)state;
    float x[N] = { 0 };
    const clock_t begin = clock();
    static const int32_t windows[] = { -1, 1, 7, 100000 };
    for (size_t w = 0; w < 4; w++) {
        qn_sample_opts o = { .size = sizeof o, .dry_multiplier = 1, .dry_last_n = windows[w], .repeat_penalty = 1.5f };
        o.penalty_last_n = windows[w];
        qn_sampler *s = open_sampler(&small, &o);
        for (int i = 0; i < 200000; i++) qn_sampler_accept(s, 7);
        x[7] = 1;
        x[3] = 0;
        assert_int_equal(pick(s, x), windows[w] == 1 ? 7 : 0); /* nothing repeats within one token; 1 / 1.5 is still the most */
        for (int i = 0; i < 7; i++) qn_sampler_accept(s, i);
        x[3] = 5;
        assert_int_equal(pick(s, x), 3);
        qn_sampler_close(&s);
    }
    assert_true((double)(clock() - begin) / CLOCKS_PER_SEC < 20);
}

static void test_bad_ids_are_not_accepted(void **state)
{
    (void)state;
    qn_sample_opts o = { .size = sizeof o, .repeat_penalty = 1.5f, .penalty_last_n = 4, .dry_multiplier = 1, .dry_last_n = 4 };
    qn_sampler *s = open_sampler(&small, &o);
    qn_sampler_accept(s, -1);
    qn_sampler_accept(s, N);
    qn_sampler_accept(s, INT32_MAX);
    float x[N] = { 0 };
    assert_int_equal(pick(s, x), 0);
    qn_sampler_close(&s);
    qn_sampler_close(&s);
}

/* Each allocation fails in turn: a status, nothing leaked, and a sampler that is open goes on once there is memory again. */
static void test_allocation_faults(void **state)
{
    (void)state;
    const qn_logit_bias bias = { 2, 1 };
    const qn_sample_opts o = { .size = sizeof o, .temperature = 1, .repeat_penalty = 1.5f, .penalty_last_n = 500, .dry_multiplier = 1,
                               .dry_last_n = -1, .bias = &bias, .n_bias = 1 };
    float x[N] = { 0 };
    long n = 1;
    for (bool failed = true; failed; n++) {
        qn_sampler *s = NULL;
        int32_t token;
        test_fail_alloc_at(n);
        qn_status status = qn_sampler_open_vocab(&s, &small, &o, NULL);
        for (int i = 0; status == QN_OK && i < 100; i++) {
            qn_sampler_accept(s, i % N);
            status = qn_sampler_pick(s, x, &token, NULL);
        }
        failed = test_alloc_has_failed();
        test_fail_alloc_at(0);
        assert_int_equal(status, failed ? QN_ERR_NOMEM : QN_OK);
        if (s) {
            qn_sampler_reset(s);
            pick(s, x);
        }
        qn_sampler_close(&s);
    }
    assert_true(n > 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_draws_follow_probabilities),
        cmocka_unit_test(test_seed_replays),
        cmocka_unit_test(test_stream_is_fixed),
        cmocka_unit_test(test_off_values),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_top_k_zero_is_off),
        cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_numeric_faults),
        cmocka_unit_test(test_refused_options),
        cmocka_unit_test(test_random_vectors),
        cmocka_unit_test(test_explog),
        cmocka_unit_test(test_selection_equals_sorting),
        cmocka_unit_test(test_xtc_rate),
        cmocka_unit_test(test_mirostat_reaches_its_target),
        cmocka_unit_test(test_long_history),
        cmocka_unit_test(test_bad_ids_are_not_accepted),
        cmocka_unit_test(test_allocation_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

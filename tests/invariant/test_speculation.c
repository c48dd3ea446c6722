/* Speculation leaves no trace in the text: over architectures, drafters (good, bad and random ones), lengths, temperatures, chains of samplers and
 * numbers of threads the tokens are those of a run without it; and at temperature 1 they are distributed as the model says. */
#include "models/model.h"
#include "src/run/draft.h"
#include "src/sample/sampler.h"
#include "tests/common/fault.h"
#include "tests/common/tiny_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { F16 = 1, CTX = 160, MOST = 400 };

static char path[64], other_path[64];
static qn_model *model, *twin, *other; /* the model; the same in 4 bits; another one with its vocabulary */

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void must(qn_status s, const qn_err *err)
{
    if (s != QN_OK) fail_msg("%s", err->text);
}

static qn_model *open_model(const char *file, const char *quantize)
{
    qn_err err = { 0 };
    qn_model *m;
    const qn_model_opts o = { .size = sizeof o, .n_threads = 1, .quantize = quantize };
    must(qn_model_open(&m, file, &o, &err), &err);
    return m;
}

static void open_models(const char *arch, uint32_t seed)
{
    assert_true(tiny_model_write(path, arch, F16, seed) && tiny_model_write(other_path, arch, F16, seed + 1));
    model = open_model(path, NULL);
    twin = open_model(path, "Q4_0");
    other = open_model(other_path, NULL);
}

static void close_models(void)
{
    qn_model_close(&model);
    qn_model_close(&twin);
    qn_model_close(&other);
    unlink(path);
    unlink(other_path);
}

typedef struct text {
    int32_t id[MOST], n;
    int32_t n_dropped;
    qn_generate_result r;
} text;

static void on_token(void *user, int32_t id)
{
    text *t = user;
    assert_true(t->n < MOST);
    t->id[t->n++] = id;
}

static void on_drop(void *user, const int32_t *tokens, int32_t n)
{
    (void)tokens;
    ((text *)user)->n_dropped += n;
}

static void generate(qn_engine *e, const qn_sample_opts *so, qn_generate_opts o, const int32_t *prompt, int32_t n_prompt, text *t)
{
    qn_err err = { 0 };
    qn_session *s;
    qn_sampler *sampler;
    *t = (text){ 0 };
    o.size = sizeof o;
    o.on_token = on_token;
    o.on_drop = on_drop;
    o.user = t;
    must(qn_session_open(&s, e, &err), &err);
    must(qn_sampler_open(&sampler, e->model, so, &err), &err);
    must(qn_session_generate(s, prompt, n_prompt, sampler, &o, &t->r, &err), &err);
    qn_sampler_close(&sampler);
    qn_session_close(&s);
}

/* ---- drafters of the test ---- */

/* What it expects: the text as it was without speculation. It is right about as often as `right` of 8, and asks nobody whether it pays. */
typedef struct oracle {
    qn_drafter d;
    const text *truth;
    int32_t n_prompt, right;
    uint32_t seed;
} oracle;

static bool oracle_open(qn_drafter *d, qn_guess *g)
{
    (void)d;
    (void)g;
    return true;
}

static void oracle_close(qn_drafter *d, qn_guess *g)
{
    (void)d;
    (void)g;
}

static void oracle_propose(qn_drafter *d, qn_guess *const *g, int32_t n)
{
    oracle *o = (oracle *)d;
    for (int32_t i = 0; i < n; i++) {
        const int32_t most = 1 + (int32_t)(next(&o->seed) % (uint32_t)g[i]->n_most);
        for (int32_t k = 0; k < most; k++) {
            const int32_t at = g[i]->stream->r.n_generated + k;
            const bool knows = (int32_t)(next(&o->seed) % 8) < o->right && at < o->truth->n;
            qn_guess_add(d, g[i], knows ? o->truth->id[at] : (int32_t)(next(&o->seed) % TINY_VOCAB), (int32_t)(next(&o->seed) % QN_GRADES));
        }
    }
}

/* The same, but only where it promises to pay. */
static void modest_propose(qn_drafter *d, qn_guess *const *g, int32_t n)
{
    oracle *o = (oracle *)d;
    for (int32_t i = 0; i < n; i++)
        while (qn_guess_goes_on(d, g[i], 0, 0)) qn_guess_add(d, g[i], (int32_t)(next(&o->seed) % TINY_VOCAB), 0);
}

/* The library's drafters where drafts cost next to nothing: how fast the machine is decides nothing here. */
static void make_cheap(qn_drafter *d, qn_guess *const *g, int32_t n)
{
    d->verify = d->draft = (qn_line){ 0 };
    for (int32_t i = 1; i <= 16; i++) {
        qn_line_note(&d->verify, i, 1);
        qn_line_note(&d->draft, i, 1e-6);
    }
    d->n_tokens = d->n_plain = 0;
    for (int32_t i = 0; i < n; i++) g[i]->plain = g[i]->stream->n % 40 < 20 ? g[i]->spent + 1e9 : 0; /* longer texts are read whole, or not */
}

static void cheap_model(qn_drafter *d, qn_guess *const *g, int32_t n)
{
    make_cheap(d, g, n);
    qn_draft_model.propose(d, g, n);
}

static void cheap_ngram(qn_drafter *d, qn_guess *const *g, int32_t n)
{
    make_cheap(d, g, n);
    qn_draft_ngram.propose(d, g, n);
}

static void make_engine_cheap(qn_engine *e)
{
    static qn_draft_kind model_kind, ngram_kind;
    model_kind = qn_draft_model;
    ngram_kind = qn_draft_ngram;
    model_kind.propose = cheap_model;
    ngram_kind.propose = cheap_ngram;
    e->drafter->kind = e->drafter->model ? &model_kind : &ngram_kind;
}

static const qn_draft_kind kind_oracle = { { 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7 }, oracle_open, oracle_close, oracle_propose };
static const qn_draft_kind kind_modest = { { 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7 }, oracle_open, oracle_close, modest_propose };

static qn_engine *open_engine(const qn_model *draft, bool ngram, int32_t draft_max, int32_t n_threads)
{
    qn_err err = { 0 };
    qn_engine *e;
    const qn_engine_opts o = { .size = sizeof o, .n_ctx = CTX, .n_chunk = 32, .draft_model = draft, .draft_ngram = ngram, .draft_max = draft_max,
                               .cache_type_k = n_threads == 2 ? "Q8_0" : NULL };
    must(qn_engine_open_threads(&e, model, &o, n_threads, &err), &err);
    return e;
}

/* ---- the same text ---- */

static const qn_sample_opts chains[] = {
    { .size = sizeof *chains },
    { .size = sizeof *chains, .temperature = 1, .top_p = 1, .seed = 3, .repeat_penalty = 1, .typical_p = 1 },
    { .size = sizeof *chains, .temperature = 0.8f, .top_p = 0.9f, .top_k = 40, .seed = 4, .repeat_penalty = 1.2f, .penalty_last_n = 8, .typical_p = 1 },
    { .size = sizeof *chains, .temperature = 1.2f, .top_p = 1, .seed = 5, .repeat_penalty = 1, .penalty_last_n = -1, .frequency_penalty = 0.3f,
      .dry_multiplier = 0.8f, .dry_base = 1.75f, .dry_last_n = -1, .xtc_probability = 0.5f, .xtc_threshold = 0.05f, .typical_p = 1 },
    { .size = sizeof *chains, .temperature = 1, .top_p = 1, .seed = 6, .repeat_penalty = 1, .mirostat = 2, .mirostat_tau = 4, .mirostat_eta = 0.1f,
      .typical_p = 1 },
};
enum { N_CHAINS = sizeof chains / sizeof *chains };

static int32_t make_prompt(int32_t *prompt, uint32_t seed)
{
    const int32_t n = 1 + (int32_t)(next(&seed) % 50);
    for (int32_t i = 0; i < n; i++) prompt[i] = i > 6 && next(&seed) % 4 ? prompt[i - 6] : 3 + (int32_t)(next(&seed) % (TINY_VOCAB - 3));
    return n;
}

static void compare(const text *want, const text *got, const char *what, int32_t i_chain)
{
    if (want->n == got->n && !memcmp(want->id, got->id, (size_t)want->n * sizeof *want->id) && want->r.finish == got->r.finish &&
        want->n_dropped == got->n_dropped) return;
    int32_t at = 0;
    while (at < want->n && at < got->n && want->id[at] == got->id[at]) at++;
    fail_msg("%s, chain %d: %d tokens and %d; they differ at %d", what, i_chain, want->n, got->n, at);
}

/* Texts with one drafter, chains by turns. */
static void check_drafter(qn_engine *plain, qn_engine *e, const char *what, int32_t n_texts, oracle *o, int32_t *n_drafted, int32_t *n_accepted)
{
    text want, got;
    int32_t prompt[64];
    *n_drafted = *n_accepted = 0;
    for (int32_t i = 0; i < n_texts; i++) {
        uint32_t seed = 77u + (uint32_t)i;
        const qn_sample_opts *chain = &chains[i % N_CHAINS];
        const int32_t n = make_prompt(prompt, seed);
        const qn_generate_opts g = { .max_tokens = next(&seed) % 3 ? 60 : 170, .ignore_end = next(&seed) % 2, .slide = next(&seed) % 2, .n_keep = 16 };
        generate(plain, chain, g, prompt, n, &want);
        if (o) o->truth = &want;
        generate(e, chain, g, prompt, n, &got);
        compare(&want, &got, what, i % N_CHAINS);
        *n_drafted += got.r.n_drafted;
        *n_accepted += got.r.n_accepted;
        assert_true(got.r.n_accepted <= got.r.n_drafted && got.r.n_draft_steps <= got.r.n_drafted);
    }
}

static void use_oracle(qn_engine *e, oracle *o, const qn_draft_kind *kind, int32_t right)
{
    qn_drafter *d = e->drafter;
    o->d = *d;
    o->d.kind = kind;
    o->right = right;
    o->seed = 5;
    free(d);
    e->drafter = NULL;
    qn_drafter *own = malloc(sizeof(oracle));
    assert_non_null(own);
    memcpy(own, o, sizeof *o);
    e->drafter = own;
}

static void same_text_of(const char *arch)
{
    int32_t n_drafted, n_accepted;
    open_models(arch, 21);
    for (int32_t max = 1; max <= QN_DRAFT_MAX; max = max * 4 - 1) {
        const int32_t n_threads = max == 3 ? 2 : 1;
        oracle o = { 0 };
        qn_engine *plain = open_engine(NULL, false, 0, n_threads), *e = open_engine(NULL, true, max, n_threads);
        if (max > 1) make_engine_cheap(e);
        check_drafter(plain, e, "n-grams", N_CHAINS, NULL, &n_drafted, &n_accepted);
        qn_engine_close(&e);
        e = open_engine(twin, false, max, n_threads);
        if (max > 1) make_engine_cheap(e);
        check_drafter(plain, e, "the model in 4 bits", N_CHAINS, NULL, &n_drafted, &n_accepted);
        assert_true(max == 1 || (n_drafted > 300 && n_accepted > 20));
        qn_engine_close(&e);
        e = open_engine(other, false, max, n_threads);
        if (max > 1) make_engine_cheap(e);
        check_drafter(plain, e, "another model", N_CHAINS, NULL, &n_drafted, &n_accepted);
        qn_engine_close(&e);
        for (int32_t right = 0; right <= 8; right += 4) {
            e = open_engine(NULL, true, max, n_threads);
            use_oracle(e, &o, &kind_oracle, right);
            check_drafter(plain, e, "an oracle", N_CHAINS, (oracle *)e->drafter, &n_drafted, &n_accepted);
            assert_true(n_drafted > 0 && (right == 0 ? n_accepted < n_drafted / 8 : n_accepted > n_drafted / 16));
            qn_engine_close(&e);
        }
        qn_engine_close(&plain);
    }
    close_models();
}

static void test_same_text(void **state)
{
    (void)state;
    same_text_of("llama");
}

static void test_same_text_with_windows(void **state)
{
    (void)state;
    same_text_of("gemma3");
}

static bool has_state(const qn_model *m)
{
    for (int32_t i = 0; i < m->net.n_layer; i++)
        if (m->net.layer[i].state_floats) return true;
    return false;
}

static void test_same_text_with_a_state(void **state)
{
    (void)state;
    int32_t n_found = 0;
    for (int32_t i = 0; i < qn_arch_count(); i++) {
        qn_model *m;
        if (!tiny_model_write(path, qn_arch_at(i)->name, F16, 1) || qn_model_open(&m, path, NULL, NULL) != QN_OK) continue;
        const bool found = has_state(m) && n_found++ < 2;
        qn_model_close(&m);
        if (found) same_text_of(qn_arch_at(i)->name);
    }
    unlink(path);
    if (n_found == 0) skip();
}

/* Drafts of which half are right: what is taken back leaves no trace in keys and values, windows and states. */
static void test_every_architecture(void **state)
{
    (void)state;
    char name[64];
    for (int32_t a = 0; tiny_model_name(a, name); a++) {
        assert_true(tiny_model_write(path, name, F16, 23));
        model = open_model(path, NULL);
        if (!qn_net_is_encoder(&model->net)) { /* it has no next token */
            int32_t n_drafted, n_accepted;
            oracle o = { 0 };
            qn_engine *plain = open_engine(NULL, false, 0, 1), *e = open_engine(NULL, true, 5, 1);
            use_oracle(e, &o, &kind_oracle, 4);
            check_drafter(plain, e, name, 3, (oracle *)e->drafter, &n_drafted, &n_accepted);
            assert_true(n_drafted > n_accepted && n_accepted > 0);
            qn_engine_close(&e);
            qn_engine_close(&plain);
        }
        qn_model_close(&model);
    }
    unlink(path);
}

/* ---- many streams ---- */

static void on_request_token(void *user, int32_t i, int32_t id)
{
    (void)i;
    on_token(user, id);
}

static void on_request_end(void *user, int32_t i, const qn_generate_result *r, const qn_err *err)
{
    (void)i;
    assert_null(err);
    ((text *)user)->r = *r;
}

static void test_requests(void **state)
{
    (void)state;
    enum { N = 6, NEW = 40 };
    open_models("llama", 9);
    const qn_engine_opts o = { .size = sizeof o, .n_ctx = CTX, .n_chunk = 32, .n_sessions = N };
    qn_engine_opts with = o;
    with.draft_model = twin;
    qn_engine *plain, *e;
    qn_err err = { 0 };
    must(qn_engine_open_threads(&plain, model, &o, 2, &err), &err);
    must(qn_engine_open_threads(&e, model, &with, 2, &err), &err);
    make_engine_cheap(e);
    qn_request *r[N];
    text want[N];
    int32_t prompt[N][64], n[N];
    qn_sample_opts chain = chains[2];
    for (int32_t i = 0; i < N; i++) {
        n[i] = make_prompt(prompt[i], 500u + (uint32_t)i);
        chain.seed = 100u + (uint64_t)i;
        generate(plain, &chain, (qn_generate_opts){ .max_tokens = NEW, .ignore_end = true }, prompt[i], n[i], &want[i]);
    }
    text got[N];
    memset(got, 0, sizeof got);
    for (int32_t i = 0; i < N; i++) {
        chain.seed = 100u + (uint64_t)i;
        const qn_request_opts q = { .size = sizeof q, .prompt = prompt[i], .n_prompt = n[i], .sampling = &chain, .max_tokens = NEW, .ignore_end = true,
                                    .on_token = on_request_token, .on_end = on_request_end, .user = &got[i] };
        must(qn_engine_submit(e, &q, &r[i], &err), &err);
    }
    int32_t n_drafted = 0;
    for (int32_t i = 0; i < N; i++) {
        assert_true(qn_request_wait(r[i], -1));
        compare(&want[i], &got[i], "requests", 2);
        n_drafted += got[i].r.n_drafted;
    }
    assert_true(n_drafted > 0);
    for (int32_t i = 0; i < N; i++) qn_request_close(&r[i]);
    qn_engine_close(&plain);
    qn_engine_close(&e);
    close_models();
}

/* ---- what does not pay ends ---- */

static void test_turns_itself_off(void **state)
{
    (void)state;
    oracle o = { 0 };
    text t;
    const int32_t prompt[] = { 1, 40, 41, 42 };
    open_models("llama", 33);
    qn_engine *e = open_engine(NULL, true, 0, 1);
    use_oracle(e, &o, &kind_modest, 0);
    generate(e, &chains[1], (qn_generate_opts){ .max_tokens = 390, .ignore_end = true, .slide = true }, prompt, 4, &t);
    assert_true(t.n == 390 && t.r.n_drafted > 0 && t.r.n_drafted < 60);
    qn_engine_close(&e);
    close_models();
}

/* ---- the distribution ---- */

enum { DRAWS = 20000 };

static void probabilities(qn_session *s, const int32_t *ids, int32_t n, const qn_sample_opts *so, double *p)
{
    static float logits[TINY_VOCAB];
    const qn_cands *c;
    qn_sampler *sampler;
    qn_err err = { 0 };
    (void)qn_session_rewind(s, ids, n - 1);
    must(qn_session_eval(s, ids + qn_session_position(s), n - qn_session_position(s), logits, &err), &err);
    must(qn_sampler_open(&sampler, model, so, &err), &err);
    must(qn_sampler_weigh(sampler, logits, &c, &err), &err);
    memset(p, 0, TINY_VOCAB * sizeof *p);
    for (int32_t i = 0; i < c->n; i++) p[qn_cands_id(c, i)] = c->p[i];
    qn_sampler_close(&sampler);
}

/* The second token of an answer, which a draft proposes, against the sum over first tokens. */
static void test_distribution(void **state)
{
    (void)state;
    static double expected[TINY_VOCAB], first[TINY_VOCAB], second[TINY_VOCAB];
    static int32_t seen[TINY_VOCAB];
    int32_t ids[5] = { 1, 60, 61, 62, 0 };
    qn_err err = { 0 };
    qn_session *s;
    text t, truth = { 0 };
    oracle o = { 0 };
    qn_sample_opts so = { .size = sizeof so, .temperature = 1, .top_k = 12, .top_p = 1, .typical_p = 1, .repeat_penalty = 1, .seed = 1 };
    open_models("llama", 55);
    qn_engine *plain = open_engine(NULL, false, 0, 1), *e = open_engine(NULL, true, 4, 1);
    use_oracle(e, &o, &kind_oracle, 8);
    oracle *drafter = (oracle *)e->drafter;
    drafter->truth = &truth;
    must(qn_session_open(&s, plain, &err), &err);
    memset(expected, 0, sizeof expected);
    memset(seen, 0, sizeof seen);
    probabilities(s, ids, 4, &so, first);
    for (int32_t a = 0; a < TINY_VOCAB; a++) {
        if (first[a] == 0) continue;
        ids[4] = a;
        probabilities(s, ids, 5, &so, second);
        for (int32_t b = 0; b < TINY_VOCAB; b++) expected[b] += first[a] * second[b] * DRAWS;
    }
    int32_t n_drafted = 0, n_accepted = 0;
    for (int32_t i = 0; i < DRAWS; i++) {
        so.seed = 1000u + (uint64_t)i;
        generate(e, &so, (qn_generate_opts){ .max_tokens = 3, .ignore_end = true }, ids, 4, &t);
        truth = t; /* the next draft is what came this time */
        seen[t.id[1]]++;
        n_drafted += t.r.n_drafted;
        n_accepted += t.r.n_accepted;
    }
    assert_true(n_drafted > DRAWS / 2 && n_accepted > DRAWS / 50 && n_accepted < n_drafted);
    double chi2 = 0, rest = 0, rest_seen = 0;
    int32_t bins = 0;
    for (int32_t b = 0; b < TINY_VOCAB; b++) {
        if (expected[b] < 20) {
            rest += expected[b];
            rest_seen += seen[b];
            continue;
        }
        chi2 += (seen[b] - expected[b]) * (seen[b] - expected[b]) / expected[b];
        bins++;
    }
    if (rest > 0) chi2 += (rest_seen - rest) * (rest_seen - rest) / rest;
    /* Wilson and Hilferty: the 99.9 % point of chi-squared */
    const double k = bins, x = 1 - 2 / (9 * k) + 3.09 * __builtin_sqrt(2 / (9 * k)), limit = k * x * x * x;
    print_message("chi-squared %.1f over %d bins, limit %.1f; %d of %d drafted tokens accepted\n", chi2, bins, limit, n_accepted, n_drafted);
    assert_true(bins > 5 && chi2 < limit);
    qn_session_close(&s);
    qn_engine_close(&plain);
    qn_engine_close(&e);
    close_models();
}

/* ---- what is refused ---- */

/* One byte of the last token's text in the file is another. */
static void change_last_token(const char *file)
{
    qn_str last;
    static uint8_t bytes[4 << 20];
    assert_int_equal(qn_token_text(model, TINY_VOCAB - 1, true, &last), QN_OK);
    FILE *f = fopen(file, "rb");
    assert_non_null(f);
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    size_t at = 0;
    while (at + last.len < n && memcmp(bytes + at, last.ptr, last.len)) at++;
    assert_true(at + last.len < n);
    bytes[at + last.len - 1] ^= 1;
    f = fopen(file, "r+b");
    assert_true(f && fwrite(bytes, 1, n, f) == n);
    fclose(f);
}

static void test_refusals(void **state)
{
    (void)state;
    qn_err err = { 0 };
    qn_engine *e;
    qn_model *m;
    open_models("llama", 3);
    qn_model_opts mo = { .size = sizeof mo, .quantize = "Q9_9" };
    assert_int_equal(qn_model_open(&m, path, &mo, &err), QN_ERR_ARG);
    assert_non_null(strstr(err.text, "Q9_9"));
    qn_model_info a, b;
    qn_model_get_info(model, &a);
    qn_model_get_info(twin, &b);
    assert_true(b.weight_bytes < a.weight_bytes / 3);
    qn_engine_opts o = { .size = sizeof o, .n_ctx = 64, .draft_ngram = true, .draft_max = 17 };
    assert_int_equal(qn_engine_open(&e, model, &o, &err), QN_ERR_ARG);
    o = (qn_engine_opts){ .size = sizeof o, .n_ctx = 64, .draft_ngram = true, .draft_model = twin };
    assert_int_equal(qn_engine_open(&e, model, &o, &err), QN_ERR_ARG);
    qn_engine_info with, without;
    o = (qn_engine_opts){ .size = sizeof o, .n_ctx = 64 };
    must(qn_engine_open(&e, model, &o, &err), &err);
    qn_engine_get_info(e, &without);
    qn_engine_close(&e);
    o.draft_model = other;
    must(qn_engine_open(&e, model, &o, &err), &err);
    qn_engine_get_info(e, &with);
    qn_engine_close(&e);
    assert_true(with.kv_bytes == 2 * without.kv_bytes && with.scratch_bytes > without.scratch_bytes);
    o.draft_model = twin; /* reads the model's own cache */
    must(qn_engine_open(&e, model, &o, &err), &err);
    qn_engine_get_info(e, &with);
    qn_engine_close(&e);
    assert_true(with.kv_bytes == without.kv_bytes && with.scratch_bytes > without.scratch_bytes);
    qn_model_close(&other);
    change_last_token(other_path);
    other = open_model(other_path, NULL);
    o.draft_model = other;
    assert_int_equal(qn_engine_open(&e, model, &o, &err), QN_ERR_ARG);
    char number[32];
    snprintf(number, sizeof number, "token %d ", TINY_VOCAB - 1);
    assert_non_null(strstr(err.text, number));
    close_models();
}

/* ---- memory ---- */

static void no_memory_of(bool ngram)
{
    const int32_t prompt[] = { 1, 40, 41, 42, 40, 41, 42, 40, 41 };
    for (long n = 1;; n++) {
        qn_err err = { 0 };
        qn_engine *e = NULL;
        qn_session *s = NULL;
        qn_sampler *sampler = NULL;
        const qn_engine_opts o = { .size = sizeof o, .n_ctx = 64, .n_chunk = 8, .draft_model = ngram ? NULL : twin, .draft_ngram = ngram };
        const qn_generate_opts g = { .size = sizeof g, .max_tokens = 12, .ignore_end = true };
        test_fail_alloc_at(n);
        qn_status st = qn_engine_open_threads(&e, model, &o, 1, &err);
        if (st == QN_OK) st = qn_session_open(&s, e, &err);
        if (st == QN_OK) st = qn_sampler_open(&sampler, model, &chains[2], &err);
        if (st == QN_OK) st = qn_session_generate(s, prompt, 9, sampler, &g, NULL, &err);
        const bool failed = test_alloc_has_failed();
        test_fail_alloc_at(0);
        qn_sampler_close(&sampler);
        qn_session_close(&s);
        qn_engine_close(&e);
        if (st != QN_OK && !err.text[0]) fail_msg("allocation %ld fails without a sentence", n);
        if (failed) continue;
        must(st, &err);
        return;
    }
}

static void test_no_memory(void **state)
{
    (void)state;
    open_models("llama", 2);
    no_memory_of(true);
    no_memory_of(false);
    close_models();
}

/* ---- what is learnt ---- */

static void test_line(void **state)
{
    (void)state;
    qn_line l = { 0 };
    assert_true(qn_line_at(&l, 1) == 0);
    qn_line_note(&l, 1, 10);
    assert_true(qn_line_at(&l, 1) > 9.99 && qn_line_at(&l, 1) < 10.01 && qn_line_slope(&l) > 0);
    for (int i = 0; i < 200; i++) qn_line_note(&l, 1 + i % 6, 10 + 2 * (i % 6));
    assert_true(qn_line_slope(&l) > 1.9 && qn_line_slope(&l) < 2.1 && qn_line_at(&l, 3) > 13.8 && qn_line_at(&l, 3) < 14.2);
    qn_line_note(&l, 1, 1e6);
    assert_true(qn_line_at(&l, 1) < 11);
    for (int i = 0; i < 300; i++) qn_line_note(&l, 1 + i % 4, 50 - i % 4); /* more tokens, less time: noise */
    assert_true(qn_line_slope(&l) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_same_text),
        cmocka_unit_test(test_same_text_with_windows),
        cmocka_unit_test(test_same_text_with_a_state),
        cmocka_unit_test(test_every_architecture),
        cmocka_unit_test(test_turns_itself_off),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_distribution),
        cmocka_unit_test(test_no_memory),
    };
    snprintf(path, sizeof path, "/tmp/quern-speculation-%d.gguf", (int)getpid());
    snprintf(other_path, sizeof other_path, "/tmp/quern-speculation-%d-b.gguf", (int)getpid());
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* How fast a model runs here. */
#include "bench_limits.h"
#include "cli_common.h"
#include "cli_interrupt.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char about[] =
    "Measure tokens per second: reading a prompt of P tokens, and generating N tokens one at a time, each after D tokens that are in the\n"
    "context already. One run that does not count comes first, then R that do. -p, -n, -d and -t take several values joined by commas;\n"
    "0 leaves a test out. Tokens are drawn at random from the vocabulary, the same in every run. Generating reads all weights for each\n"
    "token: the limit is the bandwidth of memory, measured first, over their bytes.";

enum { MAX_VALUES = 16, MAX_RUNS = 1000 };

typedef struct number_list {
    int32_t v[MAX_VALUES];
    int32_t n;
} number_list;

typedef struct bench_args {
    cli_engine engine;
    const char *prompt, *generate, *depth, *threads;
    number_list p, n, d, t;
    int32_t runs;
    bool json;
} bench_args;

typedef struct bench_test {
    bool generates;
    int32_t n_tokens, depth, threads;
    const char *cpu;
} bench_test;

typedef struct bench_result {
    double rate[MAX_RUNS], mean, best, deviation; /* tokens a second */
    int32_t n;
} bench_result;

static int parse_numbers(const char *name, const char *text, int32_t lo, int32_t hi, number_list *out)
{
    for (const char *p = text;;) {
        char *end;
        errno = 0;
        const long v = strtol(p, &end, 10);
        if (end == p || errno || v < lo || v > hi || (*end && *end != ','))
            return cli_usage("bench: %s takes numbers from %d to %d joined by commas, not '%.60s'", name, lo, hi, text);
        if (out->n == MAX_VALUES) return cli_usage("bench: %s takes at most %d values", name, MAX_VALUES);
        out->v[out->n++] = (int32_t)v;
        if (!*end) return -1;
        p = end + 1;
    }
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The same ids in every run: a multiplicative congruential generator (Park and Miller 1988) is as random as this needs. */
static void fill_tokens(int32_t *ids, int32_t n, int32_t n_vocab)
{
    uint64_t x = 20260101;
    for (int32_t i = 0; i < n; i++) {
        x = x * 48271 % 2147483647;
        ids[i] = (int32_t)(x % (uint64_t)n_vocab);
    }
}

/* Bring the session to the depth of the test, then time its tokens. */
static qn_status time_once(qn_session *s, const bench_test *t, const int32_t *ids, float *logits, double *rate, qn_err *err)
{
    qn_status status = QN_OK;
    const int32_t have = qn_session_rewind(s, ids, t->depth);
    if (have < t->depth) status = qn_session_eval(s, ids + have, t->depth - have, NULL, err);
    if (status != QN_OK) return status;
    const double began = seconds();
    if (!t->generates) status = qn_session_eval(s, ids + t->depth, t->n_tokens, logits, err);
    for (int32_t i = 0; t->generates && i < t->n_tokens && status == QN_OK; i++)
        status = qn_session_eval(s, ids + t->depth + i, 1, logits, err);
    *rate = t->n_tokens / (seconds() - began);
    return status;
}

static void summarise(bench_result *r)
{
    double sum = 0, squares = 0;
    r->best = 0;
    for (int32_t i = 0; i < r->n; i++) {
        sum += r->rate[i];
        r->best = r->rate[i] > r->best ? r->rate[i] : r->best;
    }
    r->mean = sum / r->n;
    for (int32_t i = 0; i < r->n; i++) squares += (r->rate[i] - r->mean) * (r->rate[i] - r->mean);
    r->deviation = r->n > 1 ? sqrt(squares / (r->n - 1)) : 0;
}

static int run_test(const bench_args *a, qn_session *s, const bench_test *t, const int32_t *ids, float *logits, bench_result *r)
{
    qn_err err = { 0 };
    qn_status status = QN_OK;
    double rate = 0;
    r->n = 0;
    for (int32_t i = -1; i < a->runs && status == QN_OK; i++) {
        status = time_once(s, t, ids, logits, &rate, &err);
        if (i >= 0 && status == QN_OK) r->rate[r->n++] = rate;
    }
    if (cli_interrupted()) return CLI_INTERRUPTED;
    if (status != QN_OK) return cli_failed(&err);
    summarise(r);
    return -1;
}

static void test_name(const bench_test *t, char *out, size_t cap)
{
    const int n = snprintf(out, cap, "%s%d", t->generates ? "tg" : "pp", t->n_tokens);
    if (t->depth && n > 0 && (size_t)n < cap) snprintf(out + n, cap - (size_t)n, "@d%d", t->depth);
}

static void report(const bench_args *a, const bench_test *t, const bench_result *r, json_t *results)
{
    char name[48];
    test_name(t, name, sizeof name);
    if (!a->json) {
        printf("%-16s %7d  %-8s %10.2f %10.2f %9.2f\n", name, t->threads, t->cpu, r->mean, r->best, r->deviation);
        fflush(stdout);
        return;
    }
    json_t *o = json_object(), *samples = json_array();
    for (int32_t i = 0; i < r->n; i++) json_array_append_new(samples, json_real(r->rate[i]));
    json_object_set_new(o, "test", json_string(name));
    json_object_set_new(o, "n_prompt", json_integer(t->generates ? 0 : t->n_tokens));
    json_object_set_new(o, "n_gen", json_integer(t->generates ? t->n_tokens : 0));
    json_object_set_new(o, "depth", json_integer(t->depth));
    json_object_set_new(o, "threads", json_integer(t->threads));
    json_object_set_new(o, "cpu", json_string(t->cpu));
    json_object_set_new(o, "tokens_per_second", json_real(r->mean));
    json_object_set_new(o, "best", json_real(r->best));
    json_object_set_new(o, "stddev", json_real(r->deviation));
    json_object_set_new(o, "samples", samples);
    json_array_append_new(results, o);
}

/* All tests at one number of threads, on an engine of their own. */
static int run_threads(bench_args *a, int32_t threads, const int32_t *ids, float *logits, json_t *results)
{
    qn_err err = { 0 };
    qn_session *s = NULL;
    qn_engine_info info;
    bench_result r = { .n = 0 };
    a->engine.threads = threads;
    int code = cli_engine_open(&a->engine);
    if (code >= 0) return code;
    qn_engine_get_info(a->engine.engine, &info);
    if (qn_session_open(&s, a->engine.engine, &err) != QN_OK) code = cli_failed(&err);
    cli_interrupt_watch(s);
    for (int32_t d = 0; d < a->d.n && code < 0; d++)
        for (int32_t k = 0; k < a->p.n + a->n.n && code < 0; k++) {
            const bool generates = k >= a->p.n;
            const bench_test t = { generates, generates ? a->n.v[k - a->p.n] : a->p.v[k], a->d.v[d], info.n_threads, info.cpu };
            if (!t.n_tokens) continue;
            code = run_test(a, s, &t, ids, logits, &r);
            if (code < 0) report(a, &t, &r, results);
        }
    cli_interrupt_watch(NULL);
    qn_session_close(&s);
    qn_engine_close(&a->engine.engine);
    return code;
}

static int32_t largest(const number_list *l)
{
    int32_t m = 0;
    for (int32_t i = 0; i < l->n; i++) m = l->v[i] > m ? l->v[i] : m;
    return m;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int print_json(const bench_args *a, const qn_model_info *m, double bandwidth, json_t *results)
{
    json_t *o = json_object();
    json_object_set_new(o, "model", json_string(file_name(a->engine.path)));
    json_object_set_new(o, "arch", json_string(m->arch));
    json_object_set_new(o, "n_params", json_integer((json_int_t)m->n_params));
    json_object_set_new(o, "file_bytes", json_integer((json_int_t)m->file_bytes));
    json_object_set_new(o, "weight_bytes", json_integer((json_int_t)m->weight_bytes));
    json_object_set_new(o, "runs", json_integer(a->runs));
    json_object_set_new(o, "read_bytes_per_second", json_real(bandwidth));
    json_object_set_new(o, "generate_limit", json_real(bandwidth / (double)m->weight_bytes));
    json_object_set(o, "results", results);
    const int bad = json_dumpf(o, stdout, JSON_INDENT(2)) | putchar('\n') | fflush(stdout);
    json_decref(o);
    return bad < 0 ? cli_fault("cannot write to stdout") : CLI_OK;
}

/* What an engine takes when it is left to it. */
static int32_t default_threads(const bench_args *a)
{
    qn_engine *e = NULL;
    qn_engine_info info = { .n_threads = 1 };
    const qn_engine_opts o = { .size = sizeof o, .n_ctx = 1, .n_chunk = 1 };
    if (qn_engine_open(&e, a->engine.model, &o, NULL) == QN_OK) qn_engine_get_info(e, &info);
    qn_engine_close(&e);
    return info.n_threads;
}

static int bench(bench_args *a)
{
    qn_model_info m;
    qn_model_get_info(a->engine.model, &m);
    const int32_t longest = largest(&a->p) > largest(&a->n) ? largest(&a->p) : largest(&a->n), need = largest(&a->d) + longest;
    if (a->engine.ctx && a->engine.ctx < need) return cli_usage("bench: the tests need --ctx %d", need);
    if (!a->engine.ctx) a->engine.ctx = need;
    int32_t *ids = malloc((size_t)need * sizeof *ids);
    float *logits = malloc((size_t)m.n_vocab * sizeof *logits);
    json_t *results = json_array();
    int code = ids && logits && results ? -1 : cli_fault("no memory for the tests");
    double bandwidth = 0;
    for (int32_t i = 0; i < a->t.n && code < 0; i++) {
        const double b = bench_read_bandwidth(a->t.v[i] ? a->t.v[i] : default_threads(a));
        bandwidth = b > bandwidth ? b : bandwidth;
    }
    if (code < 0) fill_tokens(ids, need, m.n_vocab);
    if (code < 0 && !a->json) {
        printf("%s, %s, %.0f M parameters, %.1f MB\n", file_name(a->engine.path), m.arch, (double)m.n_params / 1e6,
               (double)m.weight_bytes / 1e6);
        printf("memory is read at %.1f GB/s: at most %.1f tokens/s\n", bandwidth / 1e9, bandwidth / (double)m.weight_bytes);
        printf("%-16s %7s  %-8s %10s %10s %9s\n", "test", "threads", "level", "mean t/s", "best t/s", "deviation");
    }
    for (int32_t i = 0; i < a->t.n && code < 0; i++) code = run_threads(a, a->t.v[i], ids, logits, results);
    if (code < 0) code = a->json ? print_json(a, &m, bandwidth, results) : CLI_OK;
    json_decref(results);
    free(ids);
    free(logits);
    return code;
}

static int run(int argc, char **argv)
{
    bench_args a = { .prompt = "512", .generate = "128", .depth = "0", .threads = "0", .runs = 5 };
    cli_opt opts[] = {
        { CLI_STR, "prompt", 'p', "LIST", "prompt tokens to read (default 512)", &a.prompt, 0, 0, 0 },
        { CLI_STR, "generate", 'n', "LIST", "tokens to generate (default 128)", &a.generate, 0, 0, 0 },
        { CLI_STR, "depth", 'd', "LIST", "tokens in the context before (default 0)", &a.depth, 0, 0, 0 },
        { CLI_STR, "threads", 't', "LIST", "threads (default 0: the physical cores this process may use)", &a.threads, 0, 0, 0 },
        { CLI_INT, "runs", 'r', "R", "runs that count (default 5)", &a.runs, 1, MAX_RUNS, 0 },
        { CLI_FLAG, "json", 0, NULL, "print one object for scripts", &a.json, 0, 0, 0 },
        { .kind = CLI_TABLE, .target = cli_options_without(cli_engine_options(&a.engine), "threads") },
        { 0 },
    };
    int code = cli_parse(argc, argv, "bench [-m MODEL] [OPTION]...", about, opts);
    if (code < 0) code = parse_numbers("-p", a.prompt, 0, 1 << 24, &a.p);
    if (code < 0) code = parse_numbers("-n", a.generate, 0, 1 << 24, &a.n);
    if (code < 0) code = parse_numbers("-d", a.depth, 0, 1 << 24, &a.d);
    if (code < 0) code = parse_numbers("-t", a.threads, 0, 512, &a.t);
    if (code < 0 && largest(&a.p) + largest(&a.n) == 0) code = cli_usage("bench: nothing to measure: -p and -n are 0");
    if (code < 0) code = cli_model_open(&a.engine);
    if (code < 0) code = bench(&a);
    cli_engine_close(&a.engine);
    return code;
}

extern const qn_cmd qn_cmd_bench;
const qn_cmd qn_cmd_bench = { "bench", "measure tokens per second", 70, run };

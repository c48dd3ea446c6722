/* How fast models run here. */
#include "bench.h"
#include "bench_limits.h"
#include "bench_process.h"
#include "cli_interrupt.h"

#include <stdlib.h>
#include <string.h>

static const char about[] =
    "Measure tokens per second: reading a prompt of P tokens, generating N tokens one at a time, or both in one run (-pg), each after D "
    "tokens that are in the context already; in one timeline, or in many at once (--parallel). One run that does not count comes first, "
    "then R that do. Lists are joined by commas; 0 leaves "
    "a test out. Tokens are drawn at random from the vocabulary, the same in every run. The machine is measured first: how fast it reads "
    "as many bytes as the weights have, and how many 16-bit multiply-adds a second each level does at most. From what a test must read "
    "and multiply follows the limit beside each result, and which of the two sets it; the share is that of the best run. --profile shows "
    "the same for every stage of the computation, in the fastest run.";

enum { MAX_LIMITS = BENCH_MAX_VALUES * BENCH_MAX_VALUES };

typedef struct bench {
    bench_args a;
    const bench_format *format;
    void *state;               /* of the format                                              */
    int32_t n_tokens;          /* that the longest test needs                                */
    int32_t *ids;              /* [n_tokens]                                                 */
    float *logits;             /* [n_vocab]                                                  */
    bench_limit limit[MAX_LIMITS]; /* [n_threads][n_levels]                                  */
    bench_model m;
    bench_result r;
} bench;

static int32_t largest(const bench_numbers *l)
{
    int32_t m = 0;
    for (int32_t i = 0; i < l->n; i++) m = l->v[i] > m ? l->v[i] : m;
    return m;
}

static int32_t tokens_needed(const bench_args *a)
{
    int32_t most = largest(&a->p) > largest(&a->n) ? largest(&a->p) : largest(&a->n);
    for (int32_t i = 0; i < a->pair_text.n; i++) most = a->pair[i][0] + a->pair[i][1] > most ? a->pair[i][0] + a->pair[i][1] : most;
    return largest(&a->d) + most + (a->np.n > 0); /* a request's last token has a place too */
}

/* A multiplicative congruential generator (Park and Miller 1988) is as random as this needs. */
void bench_fill_tokens(int32_t *ids, int64_t n, int32_t n_vocab, uint64_t seed)
{
    uint64_t x = 20260101 * seed % 2147483647;
    for (int64_t i = 0; i < n; i++) {
        x = x * 48271 % 2147483647;
        ids[i] = (int32_t)(x % (uint64_t)n_vocab);
    }
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int open_engine(bench *b, int32_t i_threads, int32_t i_level)
{
    b->a.engine.threads = b->a.t.v[i_threads];
    b->a.engine.cpu = b->a.level[i_level];
    return cli_engine_open(&b->a.engine);
}

/* Open a model and say its first token, with the first number of threads. Names and numbers of all engines come on the way. */
static int load(bench *b, const char *model)
{
    cli_engine *e = &b->a.engine;
    e->model_arg = model;
    if (!cli_model_path(model, e->path)) return CLI_FAULT;
    b->m = (bench_model){ .cached = bench_file_cached(e->path) };
    const bool watched = bench_peak_reset();
    const double began = cli_now();
    e->threads = b->a.t.v[0];
    int code = cli_model_open(e);
    if (code >= 0) return code;
    qn_model_get_info(e->model, &b->m.info);
    b->logits = malloc((size_t)b->m.info.n_vocab * sizeof *b->logits);
    if (!b->logits) return cli_fault("no memory for the logits");
    code = open_engine(b, 0, 0);
    if (code < 0) code = bench_first_token(&b->a, b->logits);
    b->m.load_seconds = cli_now() - began;
    if (code < 0) {
        qn_engine_info info;
        qn_engine_get_info(e->engine, &info);
        b->m.load_threads = info.n_threads;
    }
    qn_engine_close(&e->engine);
    b->m.file = file_name(e->path);
    b->m.file_bytes = qn_file_bytes(qn_model_file(e->model));
    b->m.peak_bytes = watched ? bench_peak_bytes() : 0;
    return code;
}

/* Every number of threads at every level. The buffer that is read does not count as the model's memory. */
static int measure_limits(bench *b)
{
    int code = -1;
    const bench_args *a = &b->a;
    for (int32_t t = 0; t < a->t.n && code < 0; t++)
        for (int32_t l = 0; l < a->n_levels && code < 0; l++) {
            qn_engine_info info;
            bench_limit *x = &b->limit[t * a->n_levels + l];
            if ((code = open_engine(b, t, l)) >= 0) continue;
            qn_engine_get_info(a->engine.engine, &info);
            *x = (bench_limit){ .threads = info.n_threads, .cpu = info.cpu };
            qn_engine_close(&b->a.engine.engine);
            if (a->no_limits) continue;
            x->mul_adds_per_second = bench_multiply_peak(x->threads, x->cpu);
            x->bytes_per_second = l ? x[-1].bytes_per_second : bench_read_bandwidth(x->threads, b->m.info.weight_bytes);
            if (cli_interrupted()) code = CLI_INTERRUPTED;
        }
    b->m.limit = b->limit;
    b->m.n_limits = a->t.n * a->n_levels;
    return code;
}

static int run_test(bench *b, qn_session *s, bench_test t, const bench_limit *limit)
{
    if (!bench_n_tokens(&t)) return -1;
    b->r.test = t;
    b->r.limit = limit;
    const int code = bench_time(&b->a, b->a.engine.engine, s, b->ids, b->logits, &b->r);
    if (code < 0) b->format->result(b->state, &b->a, &b->m, &b->r);
    return code;
}

/* All tests at one number of threads and one level, on an engine of their own. */
static int run_tests(bench *b, const bench_limit *limit)
{
    qn_err err = { 0 };
    qn_session *s = NULL;
    const bench_args *a = &b->a;
    qn_engine_info info;
    int code = qn_session_open(&s, a->engine.engine, &err) == QN_OK ? -1 : cli_failed(&err);
    cli_interrupt_watch(s);
    const int32_t n_np = a->np.n ? a->np.n : 1;
    for (int32_t i = 0; i < a->d.n * n_np && code < 0; i++) {
        const int32_t d = a->d.v[i / n_np], np = a->np.n ? a->np.v[i % n_np] : 0;
        for (int32_t k = 0; k < a->p.n && code < 0; k++) code = run_test(b, s, (bench_test){ a->p.v[k], 0, d, np }, limit);
        for (int32_t k = 0; k < a->n.n && code < 0; k++) code = run_test(b, s, (bench_test){ 0, a->n.v[k], d, np }, limit);
        for (int32_t k = 0; k < a->pair_text.n && code < 0; k++)
            code = run_test(b, s, (bench_test){ a->pair[k][0], a->pair[k][1], d, np }, limit);
    }
    cli_interrupt_watch(NULL);
    qn_session_close(&s);
    qn_engine_get_info(a->engine.engine, &info);
    b->m.kv_bytes = info.kv_bytes > b->m.kv_bytes ? info.kv_bytes : b->m.kv_bytes;
    b->m.scratch_bytes = info.scratch_bytes > b->m.scratch_bytes ? info.scratch_bytes : b->m.scratch_bytes;
    return code;
}

static int bench_model_all(bench *b, const char *model)
{
    const bench_args *a = &b->a;
    int code = load(b, model);
    if (code < 0) code = measure_limits(b);
    if (code < 0) {
        bench_fill_tokens(b->ids, b->n_tokens, b->m.info.n_vocab, 1);
        b->format->model(b->state, a, &b->m);
    }
    const bool watched = b->m.peak_bytes && bench_peak_reset();
    for (int32_t i = 0; i < b->m.n_limits && code < 0; i++) {
        code = open_engine(b, i / a->n_levels, i % a->n_levels);
        if (code < 0) code = run_tests(b, &b->limit[i]);
        qn_engine_close(&b->a.engine.engine);
    }
    const uint64_t peak = watched ? bench_peak_bytes() : 0;
    b->m.peak_bytes = !watched ? 0 : peak > b->m.peak_bytes ? peak : b->m.peak_bytes;
    if (code < 0) b->format->model_end(b->state, a, &b->m);
    cli_engine_close(&b->a.engine);
    free(b->logits);
    b->logits = NULL;
    return code;
}

static int bench_all(bench *b)
{
    bench_args *a = &b->a;
    char path[4096];
    b->n_tokens = tokens_needed(a);
    if (a->engine.ctx && a->engine.ctx < b->n_tokens) return cli_usage("bench: the tests need --ctx %d", b->n_tokens);
    if (!a->engine.ctx) a->engine.ctx = b->n_tokens;
    a->engine.parallel = largest(&a->np);
    a->engine.profile = a->profile;
    for (int32_t i = 0; i < a->models.n; i++) /* before the first one takes its minutes */
        if (!cli_model_path(a->models.item[i], path)) return CLI_FAULT;
    b->format = a->json ? &bench_json : a->csv ? &bench_csv : &bench_table;
    b->ids = malloc((size_t)b->n_tokens * sizeof *b->ids);
    const bool begun = b->format->begin(&b->state, a);
    int code = b->ids && begun ? -1 : cli_fault("no memory for the tests");
    for (int32_t i = 0; i < a->models.n && code < 0; i++) code = bench_model_all(b, a->models.item[i]);
    if (begun && !b->format->end(b->state, a, code < 0)) code = cli_fault("cannot write to stdout");
    free(b->ids);
    free(b->r.stage);
    return code < 0 ? CLI_OK : code;
}

static int run(int argc, char **argv)
{
    bench *b = calloc(1, sizeof *b);
    if (!b) return cli_fault("no memory for the tests");
    bench_args *a = &b->a;
    *a = (bench_args){ .prompt = "512", .generate = "128", .depth = "0", .threads = "0", .runs = 5 };
    cli_opt *machine = cli_options_without_drafts(cli_engine_options(&a->engine));
    static const char *const own[] = { "model", "threads", "cpu", "ctx" };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) (void)cli_options_without(machine, own[i]);
    cli_opt opts[] = {
        { .kind = CLI_FILES, .name = "models", .target = &a->more_models },
        { CLI_LIST, "model", 'm', "MODEL", "a GGUF file, or how one in the cache begins (default: SmolLM2); several times, or without -m",
          &a->models, 0, 0, 0 },
        { CLI_STR, "prompt", 'p', "LIST", "prompt tokens to read (default 512)", &a->prompt, 0, 0, 0 },
        { CLI_STR, "generate", 'n', "LIST", "tokens to generate (default 128)", &a->generate, 0, 0, 0 },
        { CLI_LIST, "pg", 0, "P,G", "read P tokens, then generate G, in one run; may be given several times (also -pg)", &a->pair_text, 0, 0, 0 },
        { CLI_STR, "depth", 'd', "LIST", "tokens in the context before, for every test (default 0)", &a->depth, 0, 0, 0 },
        { CLI_STR, "parallel", 0, "LIST", "timelines at once, as requests, each with prompt, tokens and depth of its own;"
          " figures are of all\ntogether (default: one session; also -np)",
          &a->parallel, 0, 0, 0 },
        { CLI_STR, "np", 0, "LIST", "the same", &a->parallel, 0, 0, 0 },
        { CLI_STR, "threads", 't', "LIST", "threads (default 0: the physical cores this process may use)", &a->threads, 0, 0, 0 },
        { CLI_STR, "cpu", 0, "LIST", "highest instruction sets to use (default: what there is); 'quern version' lists them", &a->cpu, 0, 0, 0 },
        { CLI_INT, "ctx", 'c', "N", "positions of the context (default: what the longest test needs)", &a->engine.ctx, 1, INT32_MAX, 0 },
        { CLI_INT, "runs", 'r', "R", "runs that count (default 5)", &a->runs, 1, BENCH_MAX_RUNS, 0 },
        { CLI_FLAG, "profile", 0, NULL, "time, bytes and multiply-adds of each stage, over all layers", &a->profile, 0, 0, 0 },
        { CLI_FLAG, "layers", 0, NULL, "the same of each layer", &a->layers, 0, 0, 0 },
        { CLI_FLAG, "no-limits", 0, NULL, "do not measure the machine", &a->no_limits, 0, 0, 0 },
        { CLI_FLAG, "json", 0, NULL, "print one object for scripts, at the end", &a->json, 0, 0, 0 },
        { CLI_FLAG, "csv", 0, NULL, "print a header and a line for each result", &a->csv, 0, 0, 0 },
        { .kind = CLI_TABLE, .target = machine },
        { 0 },
    };
    int code = cli_parse(argc, argv, "bench [OPTION]... [MODEL]...", about, opts);
    if (code < 0) code = bench_args_check(a);
    if (code < 0) code = bench_all(b);
    free(b);
    return code;
}

extern const qn_cmd qn_cmd_bench;
const qn_cmd qn_cmd_bench = { "bench", "measure tokens per second, and where time goes", 70, run };

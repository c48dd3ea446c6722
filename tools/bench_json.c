/* Results of `quern bench` as one object, printed when all is done. What memory was not there for makes `failed`, and no object. */
#include "bench.h"

#include <jansson.h>
#include <stdlib.h>

typedef struct bench_document {
    json_t *models;
    json_t *results;     /* of the last model; borrowed                                      */
    bool failed;
} bench_document;

static bool begin(void **state, const bench_args *a)
{
    (void)a;
    bench_document *d = calloc(1, sizeof *d);
    *state = d;
    if (d) d->models = json_array();
    return d != NULL;
}

static void append(bench_document *d, json_t *list, json_t *o)
{
    if (!o || json_array_append_new(list, o) != 0) d->failed = true;
}

/* Number or null. */
static json_t *known(double v)
{
    return v > 0 ? json_real(v) : json_null();
}

static void model(void *state, const bench_args *a, const bench_model *m)
{
    bench_document *d = state;
    json_t *limits = json_array();
    for (int32_t i = 0; i < m->n_limits && !a->no_limits; i++)
        append(d, limits, json_pack("{s:i, s:s, s:o, s:o}", "threads", m->limit[i].threads, "cpu", m->limit[i].cpu, "read_bytes_per_second",
                                    known(m->limit[i].bytes_per_second), "mul_adds_per_second", known(m->limit[i].mul_adds_per_second)));
    json_t *load = json_pack("{s:f, s:i, s:f, s:o}", "seconds", m->load_seconds, "threads", m->load_threads, "bytes_per_second",
                             (double)m->file_bytes / m->load_seconds, "cached", m->cached >= 0 ? json_real(m->cached) : json_null());
    d->results = json_array();
    append(d, d->models, json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:o, s:o}", "model", m->file, "arch", m->info.arch, "n_params",
                                   (json_int_t)m->info.n_params, "file_bytes", (json_int_t)m->file_bytes, "weight_bytes",
                                   (json_int_t)m->info.weight_bytes, "load", load, "limits", limits, "results", d->results));
}

static json_t *stages(bench_document *d, const bench_args *a, const bench_result *r)
{
    json_t *list = json_array();
    qn_stage_info *s = calloc((size_t)r->n_stages + 1, sizeof *s);
    const int32_t n = s ? bench_stages(r, a->layers, s) : 0;
    for (int32_t i = 0; i < n; i++)
        append(d, list, json_pack("{s:s, s:o, s:I, s:f, s:f, s:f}", "stage", s[i].name, "layer",
                                  s[i].i_layer >= 0 ? json_integer(s[i].i_layer) : json_null(), "runs", (json_int_t)s[i].n_runs, "seconds",
                                  s[i].seconds, "bytes", s[i].bytes, "mul_adds", s[i].mul_adds));
    d->failed |= !s;
    free(s);
    return list;
}

static void result(void *state, const bench_args *a, const bench_model *m, const bench_result *r)
{
    bench_document *d = state;
    (void)m;
    char name[64];
    const char *bound;
    const double limit = bench_limit_rate(r, &bound);
    json_t *samples = json_array();
    for (int32_t i = 0; i < r->n; i++) append(d, samples, json_real(r->rate[i]));
    bench_test_name(&r->test, name, sizeof name);
    json_t *o = json_pack("{s:s, s:i, s:i, s:i, s:i, s:s, s:f, s:f, s:f, s:o}", "test", name, "n_prompt", r->test.n_prompt, "n_gen",
                          r->test.n_gen, "depth", r->test.depth, "threads", r->limit->threads, "cpu", r->limit->cpu, "tokens_per_second", r->mean,
                          "best", r->best, "stddev", r->deviation, "samples", samples);
    json_t *more = json_pack("{s:i, s:f, s:f, s:o, s:o, s:o}", "parallel", r->test.n_parallel, "bytes", r->bytes, "mul_adds", r->mul_adds, "limit",
                             known(limit), "share", known(limit > 0 ? r->best / limit : 0), "bound", limit > 0 ? json_string(bound) : json_null());
    if (!o || !more || json_object_update(o, more) != 0) d->failed = true;
    if (o && a->profile) {
        const int bad = json_object_set_new(o, "steps", json_integer((json_int_t)bench_n_steps(r))) |
                        json_object_set_new(o, "seconds", json_real(r->seconds)) | json_object_set_new(o, "stages", stages(d, a, r));
        d->failed |= bad != 0;
    }
    json_decref(more);
    append(d, d->results, o);
}

static void model_end(void *state, const bench_args *a, const bench_model *m)
{
    bench_document *d = state;
    (void)a;
    json_t *o = json_array_get(d->models, json_array_size(d->models) - 1);
    json_t *peak = m->peak_bytes ? json_integer((json_int_t)m->peak_bytes) : json_null();
    json_t *memory = json_pack("{s:o, s:I, s:I, s:I}", "peak_bytes", peak, "weight_bytes", (json_int_t)m->info.weight_bytes, "kv_bytes",
                               (json_int_t)m->kv_bytes, "scratch_bytes", (json_int_t)m->scratch_bytes);
    if (!o || json_object_set_new(o, "memory", memory) != 0) d->failed = true;
}

static bool end(void *state, const bench_args *a, bool complete)
{
    bench_document *d = state;
    bool good = true;
    if (complete) {
        json_t *o = json_pack("{s:s, s:i, s:b, s:O}", "quern", qn_version(), "runs", a->runs, "exact", a->engine.exact, "models", d->models);
        good = o && !d->failed && json_dumpf(o, stdout, JSON_INDENT(2)) == 0 && putchar('\n') != EOF && fflush(stdout) == 0;
        json_decref(o);
    }
    json_decref(d->models);
    free(d);
    return good;
}

const bench_format bench_json = { begin, model, result, model_end, end };

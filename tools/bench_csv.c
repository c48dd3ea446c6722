/* Results of `quern bench` as lines of a table: columns are only ever added, at the end. */
#include "bench.h"

#include <string.h>

static bool begin(void **state, const bench_args *a)
{
    static const char header[] = "model,arch,n_params,file_bytes,weight_bytes,test,n_prompt,n_gen,depth,threads,cpu,exact,runs,tokens_per_second,best,"
                                 "stddev,bytes,mul_adds,read_bytes_per_second,mul_adds_per_second,limit,share,bound,load_seconds,cached,parallel";
    (void)a;
    puts(header);
    fflush(stdout);
    *state = NULL;
    return true;
}

/* A text in quotes, since a file's name may hold anything. */
static void text(const char *s)
{
    putchar('"');
    for (; *s; s++) {
        if (*s == '"') putchar('"');
        putchar(*s);
    }
    printf("\",");
}

static void model(void *state, const bench_args *a, const bench_model *m)
{
    (void)state;
    (void)a;
    (void)m;
}

/* A number that is above 0 where it is known. */
static void known(double v)
{
    if (v > 0) printf("%.6g", v);
    putchar(',');
}

static void result(void *state, const bench_args *a, const bench_model *m, const bench_result *r)
{
    (void)state;
    char name[64];
    const char *bound;
    const double limit = bench_limit_rate(r, &bound);
    bench_test_name(&r->test, name, sizeof name);
    text(m->file);
    text(m->info.arch);
    printf("%llu,%llu,%llu,%s,%d,%d,%d,%d,%s,%d,%d,", (unsigned long long)m->info.n_params, (unsigned long long)m->file_bytes,
           (unsigned long long)m->info.weight_bytes, name, r->test.n_prompt, r->test.n_gen, r->test.depth, r->limit->threads, r->limit->cpu,
           a->engine.exact, r->n);
    printf("%.6g,%.6g,%.6g,%.10g,%.10g,", r->mean, r->best, r->deviation, r->bytes, r->mul_adds);
    known(r->limit->bytes_per_second);
    known(r->limit->mul_adds_per_second);
    known(limit);
    known(limit > 0 ? r->best / limit : 0);
    printf("%s,%.6g,", bound, m->load_seconds);
    if (m->cached >= 0) printf("%.4g", m->cached);
    printf(",%d\n", r->test.n_parallel);
    fflush(stdout);
}

static bool end(void *state, const bench_args *a, bool complete)
{
    (void)state;
    (void)a;
    (void)complete;
    return fflush(stdout) == 0 && !ferror(stdout);
}

const bench_format bench_csv = { begin, model, result, model, end };

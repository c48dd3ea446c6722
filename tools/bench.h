/* What the parts of `quern bench` share: a test, what it gave, and how results are told. */
#ifndef QUERN_BENCH_H
#define QUERN_BENCH_H

#include "cli_common.h"

enum { BENCH_MAX_RUNS = 1000, BENCH_MAX_VALUES = 16 };

typedef struct bench_numbers {
    int32_t v[BENCH_MAX_VALUES];
    int32_t n;
} bench_numbers;

/** What is asked for. */
typedef struct bench_args {
    cli_engine engine;
    cli_list models, more_models, pair_text;
    const char *prompt, *generate, *depth, *threads, *cpu, *parallel;
    bench_numbers p, n, d, t, np;
    int32_t pair[CLI_LIST_MAX][2];          /* [pair_text.n] prompt, generated                       */
    char level_text[256];
    const char *level[BENCH_MAX_VALUES];    /* [n_levels]; NULL: the highest                         */
    int32_t n_levels, runs;
    bool json, csv, profile, layers, no_limits;
} bench_args;

/** Read a prompt of n_prompt tokens, then generate n_gen, after `depth` tokens that are there already: in one session, or in n_parallel timelines at
 *  once, as requests. */
typedef struct bench_test {
    int32_t n_prompt, n_gen, depth;
    int32_t n_parallel;                     /* 0: a session                                          */
} bench_test;

/** What threads of this machine do at most at a level. */
typedef struct bench_limit {
    int32_t threads;
    const char *cpu;
    double bytes_per_second, mul_adds_per_second;
} bench_limit;

typedef struct bench_result {
    bench_test test;
    const bench_limit *limit;               /* level and threads are here also where nothing was measured */
    double rate[BENCH_MAX_RUNS];            /* [n] tokens a second                                   */
    int32_t n;
    double mean, best, deviation;
    double bytes, mul_adds;                 /* that a run must read and do                           */
    qn_stage_info *stage;                   /* [n_stages] of the fastest run, when they are profiled */
    int32_t n_stages;
    double seconds;                         /* of that run                                           */
} bench_result;

/** A model under test. */
typedef struct bench_model {
    const char *file;                       /* name without folders                                  */
    qn_model_info info;
    uint64_t file_bytes, kv_bytes, scratch_bytes, peak_bytes; /* peak 0: not known                   */
    double cached;                          /* share of the file in the page cache before; below 0: not known */
    double load_seconds;                    /* from opening the file to the first token              */
    int32_t load_threads;
    const bench_limit *limit;               /* [n_limits]                                            */
    int32_t n_limits;
} bench_model;

/** A way to tell results. `state` is its own, from begin to end (NULL where it needs none). */
typedef struct bench_format {
    bool (*begin)(void **state, const bench_args *a);   /* false: no memory                          */
    void (*model)(void *state, const bench_args *a, const bench_model *m);
    void (*result)(void *state, const bench_args *a, const bench_model *m, const bench_result *r);
    void (*model_end)(void *state, const bench_args *a, const bench_model *m);
    bool (*end)(void *state, const bench_args *a, bool complete); /* false: stdout could not be written */
} bench_format;
extern const bench_format bench_table, bench_csv, bench_json;

/** Check the lists of the command line. @return -1 to go on, else the exit code, after a message */
int bench_args_check(bench_args *a);

/** "pp512", "tg128@d4096", "pp512+tg128", "pp512+tg128 x8". */
void bench_test_name(const bench_test *t, char *out, size_t cap);
/** Seconds that the machine's limits allow for bytes and multiply-adds at least; 0: not known. `bound`: which one, "memory" or "multiply". */
double bench_least_seconds(const bench_limit *l, double bytes, double mul_adds, const char **bound);
/** The same as tokens a second of a test. */
double bench_limit_rate(const bench_result *r, const char **bound);
static inline int32_t bench_n_tokens(const bench_test *t)
{
    return (t->n_prompt + t->n_gen) * (t->n_parallel ? t->n_parallel : 1);
}

/** Stages of a profile as they are told: each, or those of one name together (i_layer -1), in the order in which they run first.
 *  @param out  [r->n_stages]; @return their number */
int32_t bench_stages(const bench_result *r, bool layers, qn_stage_info *out);
/** Forward passes that the profile is of. */
uint64_t bench_n_steps(const bench_result *r);

/**
 * Time one test on an engine: a run that does not count, then a->runs that do.
 * @param ids     [depth + n_prompt + n_gen]
 * @param logits  [n_vocab] to write to
 * @return -1 to go on, else the exit code, after a message
 */
int bench_time(const bench_args *a, qn_engine *e, qn_session *s, const int32_t *ids, float *logits, bench_result *r);

/** One run of a test in n_parallel timelines. @param i_run  its number: each has tokens of its own  @param seconds  out: from the first request to
 *  the last end */
qn_status bench_parallel(qn_engine *e, const bench_test *t, int32_t n_vocab, int32_t i_run, double *seconds, qn_err *err);

/** Token ids that look random; the same for the same seed, 1 .. */
void bench_fill_tokens(int32_t *ids, int64_t n, int32_t n_vocab, uint64_t seed);

/** Evaluate a single token on a session of its own. @return as bench_time */
int bench_first_token(const bench_args *a, float *logits);

#endif

#include "bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TOKENS = 1 << 24, MOST_THREADS = 512, MOST_PARALLEL = 4096 };

static int parse_numbers(const char *name, const char *text, int32_t hi, bench_numbers *out)
{
    for (const char *p = text;;) {
        char *end;
        errno = 0;
        const long v = strtol(p, &end, 10);
        if (end == p || errno || v < 0 || v > hi || (*end && *end != ','))
            return cli_usage("bench: %s takes numbers from 0 to %d joined by commas, not '%.60s'", name, hi, text);
        if (out->n == BENCH_MAX_VALUES) return cli_usage("bench: %s takes at most %d values", name, BENCH_MAX_VALUES);
        out->v[out->n++] = (int32_t)v;
        if (!*end) return -1;
        p = end + 1;
    }
}

static int parse_pair(const char *text, int32_t out[2])
{
    bench_numbers two = { .n = 0 };
    const int code = parse_numbers("-pg", text, MOST_TOKENS, &two);
    if (code >= 0) return code;
    if (two.n != 2 || !two.v[0] || !two.v[1])
        return cli_usage("bench: -pg takes two numbers from 1 on, P,G: tokens to read, then to generate; not '%.60s'", text);
    out[0] = two.v[0];
    out[1] = two.v[1];
    return -1;
}

static int parse_levels(bench_args *a)
{
    a->n_levels = 1;
    if (!a->cpu) return -1;
    if (strlen(a->cpu) >= sizeof a->level_text) return cli_usage("bench: --cpu takes at most %d levels", BENCH_MAX_VALUES);
    memcpy(a->level_text, a->cpu, strlen(a->cpu) + 1);
    a->n_levels = 0;
    for (char *p = a->level_text, *next; p; p = next) {
        next = strchr(p, ',');
        if (next) *next++ = 0;
        const int code = cli_level_check(p);
        if (code >= 0) return code;
        if (a->n_levels == BENCH_MAX_VALUES) return cli_usage("bench: --cpu takes at most %d levels", BENCH_MAX_VALUES);
        a->level[a->n_levels++] = p;
    }
    return -1;
}

static bool any(const bench_numbers *l)
{
    for (int32_t i = 0; i < l->n; i++)
        if (l->v[i]) return true;
    return false;
}

/* Models named with -m and without come to one list, in this order. */
static int join_models(bench_args *a)
{
    for (int32_t i = 0; i < a->more_models.n; i++) {
        if (a->models.n == CLI_LIST_MAX) return cli_usage("bench: more than %d models", CLI_LIST_MAX);
        a->models.item[a->models.n++] = a->more_models.item[i];
    }
    if (!a->models.n) a->models.item[a->models.n++] = NULL; /* the default one */
    return -1;
}

int bench_args_check(bench_args *a)
{
    int code = parse_numbers("-p", a->prompt, MOST_TOKENS, &a->p);
    if (code < 0) code = parse_numbers("-n", a->generate, MOST_TOKENS, &a->n);
    if (code < 0) code = parse_numbers("-d", a->depth, MOST_TOKENS, &a->d);
    if (code < 0 && a->parallel) code = parse_numbers("--parallel", a->parallel, MOST_PARALLEL, &a->np);
    for (int32_t i = 0; i < a->np.n && code < 0; i++)
        if (!a->np.v[i]) code = cli_usage("bench: --parallel takes numbers from 1 on");
    if (code < 0) code = parse_numbers("-t", a->threads, MOST_THREADS, &a->t);
    for (int32_t i = 0; i < a->pair_text.n && code < 0; i++) code = parse_pair(a->pair_text.item[i], a->pair[i]);
    if (code < 0) code = parse_levels(a);
    if (code < 0) code = join_models(a);
    if (code >= 0) return code;
    a->profile |= a->layers;
    if (a->json && a->csv) return cli_usage("bench: --json and --csv exclude each other");
    if (a->csv && a->profile) return cli_usage("bench: --csv has no place for a profile; --json has");
    if (!any(&a->p) && !any(&a->n) && !a->pair_text.n) return cli_usage("bench: nothing to measure: -p and -n are 0");
    return -1;
}

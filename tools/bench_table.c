/* Results of `quern bench` for people: a line for each as it comes, or a block for each profile. */
#include "bench.h"

#include <stdlib.h>

static bool begin(void **state, const bench_args *a)
{
    (void)a;
    *state = NULL;
    return true;
}

static void model(void *state, const bench_args *a, const bench_model *m)
{
    (void)state;
    printf("%s, %s, %.0f M parameters, %.1f MB of weights\n", m->file, m->info.arch, (double)m->info.n_params / 1e6,
           (double)m->info.weight_bytes / 1e6);
    printf("load      %.3f s to the first token, %d threads: %.2f GB/s of file", m->load_seconds, m->load_threads,
           (double)m->file_bytes / m->load_seconds / 1e9);
    if (m->cached >= 0) printf(", %.0f %% of it in the page cache before", 100 * m->cached);
    printf("\n");
    for (int32_t i = 0; i < m->n_limits && !a->no_limits; i++) {
        const bench_limit *l = &m->limit[i];
        if (i % a->n_levels == 0) printf("memory    %d threads read %.1f GB/s\n", l->threads, l->bytes_per_second / 1e9);
        printf("multiply  %d threads do %.1f GMAC/s at %s\n", l->threads, l->mul_adds_per_second / 1e9, l->cpu);
    }
    if (!a->profile)
        printf("\n%-18s %7s  %-10s %10s %10s %9s %10s %6s  %s\n", "test", "threads", "level", "mean t/s", "best t/s", "deviation", "limit t/s",
               "share", "bound by");
    fflush(stdout);
}

/* "40 %", or nothing where there is no limit. */
static const char *percent(double share, char out[16])
{
    if (share > 0) snprintf(out, 16, "%.0f %%", 100 * share);
    else out[0] = 0;
    return out;
}

static void stage_line(const char *name, const qn_stage_info *s, double n_steps, double all, const bench_limit *l)
{
    char limit[16];
    const char *bound;
    const double least = bench_least_seconds(l, s->bytes, s->mul_adds, &bound);
    printf("%-16s %11.1f %6.1f %%", name, 1e6 * s->seconds / n_steps, 100 * s->seconds / all);
    if (s->bytes > 0)
        printf(" %10.2f %7.1f %10.4f %8.1f %6s  %s", s->bytes / n_steps / 1e6, s->bytes / s->seconds / 1e9, s->mul_adds / n_steps / 1e9,
               s->mul_adds / s->seconds / 1e9, percent(least / s->seconds, limit), bound);
    printf("\n");
}

static void profile(const bench_args *a, const bench_result *r)
{
    qn_stage_info *s = calloc((size_t)r->n_stages + 1, sizeof *s), total = { .seconds = r->seconds }, rest = { .seconds = r->seconds };
    const int32_t n = s ? bench_stages(r, a->layers, s) : 0;
    const double n_steps = (double)bench_n_steps(r);
    printf("%-16s %11s %8s %10s %7s %10s %8s %6s  %s\n", "stage", "us a step", "time", "MB a step", "GB/s", "GMAC", "GMAC/s", "share",
           "bound by");
    for (int32_t i = 0; i < n; i++) {
        char name[64];
        if (s[i].i_layer >= 0) snprintf(name, sizeof name, "%2d %s", s[i].i_layer, s[i].name);
        else snprintf(name, sizeof name, "%s", s[i].name);
        stage_line(name, &s[i], n_steps, r->seconds, r->limit);
        total.bytes += s[i].bytes;
        total.mul_adds += s[i].mul_adds;
        rest.seconds -= s[i].seconds;
    }
    stage_line("between stages", &rest, n_steps, r->seconds, r->limit);
    stage_line("all", &total, n_steps, r->seconds, r->limit);
    free(s);
}

static void result(void *state, const bench_args *a, const bench_model *m, const bench_result *r)
{
    (void)state;
    (void)m;
    char name[64], share[16], limit_text[24] = "";
    const char *bound;
    const double limit = bench_limit_rate(r, &bound);
    bench_test_name(&r->test, name, sizeof name);
    if (limit > 0) snprintf(limit_text, sizeof limit_text, "%.2f", limit);
    if (a->profile) {
        printf("\n%s, %d threads, %s: %.2f tokens/s", name, r->limit->threads, r->limit->cpu, r->best);
        if (limit > 0) printf(" of %.2f that %s allows", limit, bound);
        printf("\n");
        profile(a, r);
    } else {
        printf("%-18s %7d  %-10s %10.2f %10.2f %9.2f %10s %6s  %s\n", name, r->limit->threads, r->limit->cpu, r->mean, r->best, r->deviation,
               limit_text, percent(limit > 0 ? r->best / limit : 0, share), bound);
    }
    fflush(stdout);
}

static void model_end(void *state, const bench_args *a, const bench_model *m)
{
    (void)state;
    const double parts = (double)m->info.weight_bytes + (double)m->kv_bytes + (double)m->scratch_bytes;
    printf("\n");
    if (m->peak_bytes)
        printf("resident  %.1f MB at most; weights %.1f, KV %.1f, scratch %.1f: %.2f of their sum\n", (double)m->peak_bytes / 1e6,
               (double)m->info.weight_bytes / 1e6, (double)m->kv_bytes / 1e6, (double)m->scratch_bytes / 1e6, (double)m->peak_bytes / parts);
    if (a->models.n > 1) printf("\n");
    fflush(stdout);
}

static bool end(void *state, const bench_args *a, bool complete)
{
    (void)state;
    (void)a;
    (void)complete;
    return fflush(stdout) == 0 && !ferror(stdout);
}

const bench_format bench_table = { begin, model, result, model_end, end };

#include "perplexity_stats.h"

#include <math.h>
#include <stdlib.h>

/* What is summed, by name, so that one function serves all. */
static double get_nll(const ppl_point *p) { return p->nll; }
static double get_nll_base(const ppl_point *p) { return p->nll_base; }
static double get_log_ratio(const ppl_point *p) { return p->nll - p->nll_base; }
static double get_kl(const ppl_point *p) { return p->kl; }
static double get_dp2(const ppl_point *p) { return p->dp * p->dp; }
static double get_same(const ppl_point *p) { return p->same_top ? 1 : 0; }

/* Two passes: squares of differences lose nothing where the mean is large. */
static ppl_mean mean(const ppl_point *p, size_t n, double (*get)(const ppl_point *))
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) sum += get(&p[i]);
    const double m = sum / (double)n;
    for (size_t i = 0; i < n; i++) squares += (get(&p[i]) - m) * (get(&p[i]) - m);
    return (ppl_mean){ m, n > 1 ? sqrt(squares / (double)n / (double)(n - 1)) : 0 };
}

static ppl_mean exponential(ppl_mean m)
{
    const double e = exp(m.value);
    return (ppl_mean){ e, e * m.error };
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, size_t n, double fraction)
{
    const double at = fraction * (double)(n - 1);
    const size_t i = (size_t)at;
    const double part = at - (double)i;
    return i + 1 < n ? (1 - part) * sorted[i] + part * sorted[i + 1] : sorted[n - 1];
}

void ppl_stats_make(ppl_stats *out, const ppl_point *points, size_t n, double *scratch)
{
    *out = (ppl_stats){ .n = n, .perplexity = exponential(mean(points, n, get_nll)) };
    if (!scratch) return;
    out->base_perplexity = exponential(mean(points, n, get_nll_base));
    out->log_ratio = mean(points, n, get_log_ratio);
    out->kl = mean(points, n, get_kl);
    for (size_t i = 0; i < n; i++) scratch[i] = points[i].kl;
    qsort(scratch, n, sizeof *scratch, ascending);
    out->kl_median = quantile(scratch, n, 0.5);
    out->kl_p99 = quantile(scratch, n, 0.99);
    out->kl_max = scratch[n - 1];
    const ppl_mean top = mean(points, n, get_same), square = mean(points, n, get_dp2);
    out->top1_percent = (ppl_mean){ 100 * top.value, 100 * top.error };
    const double rms = sqrt(square.value);
    out->dp_rms_percent = (ppl_mean){ 100 * rms, rms > 0 ? 100 * square.error / (2 * rms) : 0 };
}

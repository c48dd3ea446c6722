/* Statistics of a model's predictions over a text, alone or beside those of another model. */
#ifndef QUERN_PERPLEXITY_STATS_H
#define QUERN_PERPLEXITY_STATS_H

#include <stdbool.h>
#include <stddef.h>

/** What one position tells. Natural logarithms throughout; the last four only where there is a base model. */
typedef struct ppl_point {
    double nll;         /* -ln of the probability given to the token that follows                                   */
    double nll_base;    /* the base model's                                                                         */
    double kl;          /* KL(base || model) of the two distributions, in nats                                      */
    double dp;          /* probability of the token that follows, less the base model's                             */
    bool same_top;      /* both models find the same token most likely                                              */
} ppl_point;

/** A mean and its standard error, which is 0 for fewer than two values. */
typedef struct ppl_mean {
    double value, error;
} ppl_mean;

typedef struct ppl_stats {
    size_t n;
    ppl_mean perplexity;
    ppl_mean base_perplexity;
    ppl_mean log_ratio;                     /* ln(perplexity / base_perplexity); the error knows that the two vary together  */
    ppl_mean kl;
    double kl_median, kl_p99, kl_max;       /* between two values, quantiles are interpolated                       */
    ppl_mean top1_percent;
    ppl_mean dp_rms_percent;                /* root of the mean square of dp                                        */
} ppl_stats;

/**
 * @param points   [n], n at least 1
 * @param scratch  [n] when there is a base model; NULL when there is none, and what needs one stays 0
 */
void ppl_stats_make(ppl_stats *out, const ppl_point *points, size_t n, double *scratch);

#endif

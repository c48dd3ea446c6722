#include "src/sample/explog.h"
#include "src/sample/sampler.h"

#include <math.h>

void qn_cut_top_n_sigma(qn_cands *c, float n)
{
    double mean = 0, var = 0;
    for (int32_t i = 0; i < c->n; i++) mean += (double)c->logit[i];
    mean /= c->n;
    for (int32_t i = 0; i < c->n; i++) {
        const double d = (double)c->logit[i] - mean;
        var += d * d;
    }
    qn_cands_keep_from(c, (double)qn_cands_max(c) - (double)n * sqrt(var / c->n));
}

void qn_cut_top_k(qn_cands *c, int32_t k)
{
    qn_cands_keep_highest(c, k);
}

void qn_cut_typical(qn_cands *c, float p)
{
    const qn_softmax sm = qn_cands_softmax(c);
    const double entropy = qn_cands_entropy(c, sm);
    for (int32_t i = 0; i < c->n; i++) {
        const double surprise = (double)sm.max + sm.log_sum - (double)c->logit[i];
        c->key[i] = ~qn_sort_key((float)fabs(surprise - entropy));
    }
    qn_cands_select(c, c->p, (double)p);
}

void qn_cut_top_p(qn_cands *c, float p)
{
    qn_cands_softmax(c);
    for (int32_t i = 0; i < c->n; i++) c->key[i] = qn_sort_key(c->logit[i]);
    qn_cands_select(c, c->p, (double)p);
}

void qn_cut_min_p(qn_cands *c, float p)
{
    qn_cands_keep_from(c, (double)qn_cands_max(c) + qn_log((double)p));
}

void qn_cut_mirostat(qn_cands *c, double mu)
{
    const qn_softmax sm = qn_cands_softmax(c);
    /* surprise = (max + log_sum - logit) / ln 2 <= mu */
    qn_cands_keep_from(c, (double)sm.max + sm.log_sum - mu * QN_LN2_HI - mu * QN_LN2_LO);
}

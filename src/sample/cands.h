/* The candidates for the next token: what samplers reweigh and thin out.
 *
 * They stay in ascending order of id through every step, so a truncation is a threshold and one pass that drops what is below, equal
 * sets give equal draws whatever led to them, and of equal candidates the lower id is kept. */
#ifndef QN_SAMPLE_CANDS_H
#define QN_SAMPLE_CANDS_H

#include "src/base/err.h"
#include "src/base/rank.h"

enum { QN_SELECT_BINS = 2048 };

typedef struct qn_cands {
    const float *logit;   /* [n] the caller's until a step changes them                     */
    const int32_t *id;    /* [n] ascending; NULL: candidate i is token i                    */
    int32_t n;
    const qn_extremes *group; /* [n / QN_RANK_GROUP, rounded up] of logit; NULL: not known   */
    double *p;            /* [n] after qn_cands_softmax                                     */
    int32_t n_vocab;
    float *own_logit;     /* [n_vocab]                                                      */
    int32_t *own_id;      /* [n_vocab]                                                      */
    uint32_t *key;        /* [n_vocab] scratch of qn_cands_select                           */
    double *bin;          /* [QN_SELECT_BINS] scratch of qn_cands_select                    */
} qn_cands;

/** What a softmax went by: log p[i] = logit[i] - max - log_sum. */
typedef struct qn_softmax {
    float max;
    double log_sum;
} qn_softmax;

qn_status qn_cands_open(qn_cands *c, int32_t n_vocab, qn_err *err);
void qn_cands_close(qn_cands *c);

/** Start with every token whose logit is above -infinity. @param logits [n_vocab], borrowed until the next begin.
 *  @param group  extremes of each QN_RANK_GROUP logits, borrowed likewise: searches for the highest then skip most groups. NULL: not known
 *  @return QN_ERR_NUMERIC: NaN, +infinity, or no candidate */
qn_status qn_cands_begin(qn_cands *c, const float *logits, const qn_extremes *group, qn_err *err);

static inline int32_t qn_cands_id(const qn_cands *c, int32_t i)
{
    return c->id ? c->id[i] : i;
}

/** Logits that may be written: [n]. Pass results through qn_logit_bound. */
float *qn_cands_edit(qn_cands *c);
/** Logits stay finite where sums and products leave float's range: a banned token is no candidate, so none may become infinite. */
static inline float qn_logit_bound(double x)
{
    return x > 3.4028234663852886e38 ? 3.4028234663852886e38f : x < -3.4028234663852886e38 ? -3.4028234663852886e38f : (float)x;
}

float qn_cands_max(const qn_cands *c);
/** The lowest id among the highest logits. */
int32_t qn_cands_argmax(const qn_cands *c);
/** By how much the highest logit exceeds the second highest; infinite where there is one candidate. */
float qn_cands_lead(const qn_cands *c);
/** Fill p with probabilities that add up to one. The highest logit must be finite. */
qn_softmax qn_cands_softmax(qn_cands *c);
/** Entropy of p in nats; after qn_cands_softmax. */
double qn_cands_entropy(const qn_cands *c, qn_softmax sm);

/** Drop candidates whose logit is below `floor`; the best stays if all are. */
void qn_cands_keep_from(qn_cands *c, double floor);
/** Drop the candidates whose logit is -infinity; there may be none left. */
void qn_cands_drop_banned(qn_cands *c);
/** Drop candidates of logit `floor` and above, but the lowest of them: of equals, the one with the highest id stays. */
void qn_cands_drop_above_lowest(qn_cands *c, double floor);
/** Keep the k highest, k >= 1. */
void qn_cands_keep_highest(qn_cands *c, int32_t k);
/**
 * Keep those of the highest c->key until their weights reach `target`, at least one. Linear in n: a radix search for the last key
 * that stays, then one pass.
 * @param weight  [n]; NULL: each weighs one
 */
void qn_cands_select(qn_cands *c, const double *weight, double target);

/** The order of ranks, unsigned. */
static inline uint32_t qn_rank_key(int32_t rank)
{
    return (uint32_t)rank ^ 0x80000000u;
}

static inline uint32_t qn_sort_key(float x)
{
    return qn_rank_key(qn_float_rank(x));
}

#endif

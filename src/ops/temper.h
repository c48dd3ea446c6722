/* Queries that grow with the logarithm of how often their position has passed a span, so that attention to a long text stays sharp (Meta 2025, Llama 4). */
#ifndef QN_OPS_TEMPER_H
#define QN_OPS_TEMPER_H

#include <math.h>
#include <stdint.h>

typedef struct qn_temper {
    float scale;             /* 0: they do not grow                                          */
    int32_t span, from;      /* span at least 1 where they do                                */
} qn_temper;

/** 1 + scale * log(1 + floor((position + from) / span)) */
static inline double qn_temper_factor(const qn_temper *t, int32_t position)
{
    return t->scale == 0 ? 1 : 1 + t->scale * log(1 + (double)(((int64_t)position + t->from) / t->span));
}

#endif

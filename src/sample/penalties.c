#include "src/sample/sampler.h"

void qn_penalise(qn_cands *c, const int32_t *count, float repeat, float frequency, float presence)
{
    float *logit = qn_cands_edit(c);
    for (int32_t i = 0; i < c->n; i++) {
        const int32_t n = count[qn_cands_id(c, i)];
        if (n == 0) continue;
        const double x = logit[i], r = x > 0 ? x / (double)repeat : x * (double)repeat;
        logit[i] = qn_logit_bound(r - n * (double)frequency - (double)presence);
    }
}

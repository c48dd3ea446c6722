#include "src/sample/explog.h"
#include "src/sample/sampler.h"

void qn_heat(qn_cands *c, double temperature)
{
    if (temperature <= (double)QN_COLD) {
        qn_cands_keep_highest(c, 1);
        return;
    }
    float *logit = qn_cands_edit(c);
    for (int32_t i = 0; i < c->n; i++) logit[i] = qn_logit_bound((double)logit[i] / temperature);
}

double qn_dynamic_temperature(qn_cands *c, float temperature, float range, float exponent)
{
    const double hi = (double)temperature + (double)range, lo = temperature > range ? (double)temperature - (double)range : 0;
    if (c->n < 2) return hi;
    const double entropy = qn_cands_entropy(c, qn_cands_softmax(c)) / qn_log(c->n);
    if (entropy < 1e-300) return lo;
    const double share = entropy < 1 ? qn_pow(entropy, (double)exponent) : 1;
    return lo + (hi - lo) * share;
}

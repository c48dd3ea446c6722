#include "src/sample/explog.h"
#include "src/sample/sampler.h"

void qn_cut_xtc(qn_cands *c, float probability, float threshold, qn_random *r)
{
    if (qn_random_unit(r) >= (double)probability || c->n < 2) return;
    const qn_softmax sm = qn_cands_softmax(c);
    qn_cands_drop_above_lowest(c, (double)sm.max + sm.log_sum + qn_log((double)threshold));
}

#include "src/ops/attn_join.h"

void qn_attn_join(const qn_kernels *k, float *m_all, float *l_all, float *o_all, float m, float l, const float *o, int32_t n)
{
    const float most = m > *m_all ? m : *m_all;
    float shrink[2] = { *m_all - most, m - most };
    k->exp(shrink, 2, shrink);
    *m_all = most;
    *l_all = *l_all * shrink[0] + l * shrink[1];
    for (int32_t d = 0; d < n; d++) o_all[d] = o ? o_all[d] * shrink[0] + o[d] * shrink[1] : o_all[d] * shrink[0];
}

void qn_attn_finish(float l, const float *o, int32_t n, float *out)
{
    for (int32_t d = 0; d < n; d++) out[d] = o[d] / l;
}

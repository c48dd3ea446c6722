/* The search at the instruction set that every CPU has. */
#include "quant/search.h"

void qn_encode_baseline(const qn_fmt *fmt, const float *w, const float *importance, int64_t n_blocks, uint8_t *out)
{
    qn_encode_lanes(fmt, w, importance, n_blocks, out);
}

void qn_search_baseline(const qn_fmt *fmt, const float *w, const float *importance, int64_t n_blocks, qn_fields *fields)
{
    qn_search_lanes(fmt, w, importance, n_blocks, NULL, fields);
}

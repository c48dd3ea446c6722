/* The search for quantised blocks, eight blocks at a time. */
#include "quant/search.h"
#include "simd/avx2/avx2.h"

void qn_encode_avx2(const qn_fmt *fmt, const float *w, const float *importance, int64_t n_blocks, uint8_t *out)
{
    if (fmt->pack) qn_encode_lanes(fmt, w, importance, n_blocks, out);
    else fmt->encode(w, importance, n_blocks, out);
}

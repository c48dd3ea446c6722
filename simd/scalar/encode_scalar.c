#include "simd/scalar/scalar.h"

void qn_encode_scalar(const qn_fmt *fmt, const float *w, const float *importance, int64_t n_blocks, uint8_t *out)
{
    fmt->encode(w, importance, n_blocks, out);
}

/* F16: IEEE 754 binary16: sign, 5 bits of exponent, 10 of fraction. Widening is exact; NaN becomes quiet. */
#include "quant/quant.h"

#include "src/base/half.h"

static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    for (int64_t i = 0; i < n_blocks; i++) out[i] = qn_f32_from_f16(qn_load_u16(blocks + 2 * i));
}

static void encode(const float *w, const float *importance, int64_t n_blocks, uint8_t *out)
{
    (void)importance;
    for (int64_t i = 0; i < n_blocks; i++) qn_store_f16(out + 2 * i, qn_clamp_finite(w[i], 65504.0f));
}

extern const qn_fmt qn_fmt_f16;
const qn_fmt qn_fmt_f16 = { 1, "F16", 1, 2, decode, encode, NULL, { 0 } };

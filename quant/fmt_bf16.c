/* BF16: the upper half of a float32: sign, 8 bits of exponent, 7 of fraction. Widening is exact. */
#include "quant/quant.h"

#include "src/base/half.h"

static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    for (int64_t i = 0; i < n_blocks; i++) out[i] = qn_f32_from_bf16(qn_load_u16(blocks + 2 * i));
}

extern const qn_fmt qn_fmt_bf16;
const qn_fmt qn_fmt_bf16 = { 30, "BF16", 1, 2, decode };

/* BF16: the upper half of a float32: sign, 8 bits of exponent, 7 of fraction. Widening is exact. */
#include "quant/quant.h"

#include "src/base/half.h"

static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    for (int64_t i = 0; i < n_blocks; i++) out[i] = qn_f32_from_bf16(qn_load_u16(blocks + 2 * i));
}

static void encode(const float *w, const float *importance, int64_t n_blocks, uint8_t *out)
{
    (void)importance;
    for (int64_t i = 0; i < n_blocks; i++) {
        const uint32_t u = qn_f32_bits(qn_clamp_finite(w[i], 0x1.fep127f));
        qn_store_u16(out + 2 * i, (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16)); /* to nearest even */
    }
}

extern const qn_fmt qn_fmt_bf16;
const qn_fmt qn_fmt_bf16 = { 30, "BF16", 1, 2, decode, encode, NULL, { 0 } };

/* NVFP4: 64 4-bit floats in 4 sub-blocks of 16, each with an 8-bit float (E4M3 without sign) as scale.
 *    36 bytes, 4.5 bits per weight.
 *    0                   4                                       36
 *    | s[0] ... s[3]: u8 | q[0] q[1] ... q[31]: two nibbles each |
 *    sub-block k: low nibble of q[8 k + j]: weight 16 k + j, high nibble: weight 16 k + j + 8.
 *    w = s[k] * fp4, as (s[k] / 2) * (2 * fp4)
 */
#include "quant/quant.h"

#include "quant/fp4.h"
#include "src/base/half.h"

enum { N = 64, BYTES = 36 };

typedef struct block {
    uint8_t s[4];
    uint8_t q[32];
} block;
_Static_assert(sizeof(block) == BYTES, "a NVFP4 block as it is in files");

/* Half of an E4M3 number: 4 bits of exponent with bias 7, 3 of fraction.
 *    0x7f (NaN in E4M3) counts as 0; bit 7 is ignored. */
static float half_scale(uint8_t s)
{
    const unsigned e = s >> 3 & 15, m = s & 7;
    if (s == 0x7f) return 0;
    if (e == 0) return (float)m * 0x1p-10f;
    return qn_f32_from_bits((e + 119) << 23 | m << 20);
}

static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    const block *b = (const block *)blocks;
    for (int64_t i = 0; i < n_blocks; i++, b++, out += N) {
        for (int k = 0; k < 4; k++) {
            const float d = half_scale(b->s[k]);
            for (int j = 0; j < 8; j++) {
                out[16 * k + j] = d * qn_fp4_doubled(b->q[8 * k + j]);
                out[16 * k + j + 8] = d * qn_fp4_doubled(b->q[8 * k + j] >> 4);
            }
        }
    }
}

extern const qn_fmt qn_fmt_nvfp4;
const qn_fmt qn_fmt_nvfp4 = { 40, "NVFP4", N, BYTES, decode, NULL, NULL, { 0 } };

/* IQ2_XS: 256 weights in 32 groups of 8, a grid point of magnitudes and signs each; a 4-bit scale for two groups.
 *    74 bytes, 2.3125 bits per weight.
 *    0        2                     66                  74
 *    | d: f16 | p[0] ... p[31]: u16 | s[0] ... s[7]: u8 |
 *    p[g]: bits 0 .. 8 the point of group g, bits 9 .. 15 its signs, the eighth makes them even;
 *    scale: nibble g / 2 % 2 of s[g / 4].
 *    w = ((d * (0.5 + scale)) * 0.25) * magnitude, sign flipped where its bit is set
 */
#include "quant/quant.h"

#include "quant/grid.h"
#include "src/base/half.h"

enum { N = 256, BYTES = 74 };

typedef struct block {
    uint8_t d[2];
    uint8_t p[32][2];
    uint8_t s[8];
} block;
_Static_assert(sizeof(block) == BYTES, "a IQ2_XS block as it is in files");

static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    const block *b = (const block *)blocks;
    for (int64_t i = 0; i < n_blocks; i++, b++, out += N) {
        const float d = qn_f32_from_f16(qn_load_u16(b->d));
        for (int g = 0; g < 32; g++) {
            const unsigned p = qn_load_u16(b->p[g]);
            const float dg = d * (0.5f + (float)(b->s[g / 4] >> g / 2 % 2 * 4 & 15)) * 0.25f;
            qn_grid2_decode(dg, qn_grid_iq2_xs[p & 511], qn_even_signs(p >> 9), out + 8 * g);
        }
    }
}

extern const qn_fmt qn_fmt_iq2_xs;
const qn_fmt qn_fmt_iq2_xs = { 17, "IQ2_XS", N, BYTES, decode, NULL, NULL, { 0 } };

/* IQ1_M: 256 weights in 32 groups of 8: a grid point of values -1, 0, 1 and a shift; a 3-bit scale for two groups.
 *    56 bytes, 1.75 bits per weight.
 *    0                    32                     48                   56
 *    | p[0] ... p[31]: u8 | ph[0] ... ph[15]: u8 | s[0] ... s[3]: u16 |
 *    nibble g % 2 of ph[g / 2]: three bits above p[g] of the point of group g, then one for the shift:
 *    set -1/8, else 1/8.
 *    scale of group g: bits 3 (g / 2 % 4) .. + 2 of s[g / 8]; bits 12 .. 15 of s[n]: nibble n of the f16 d.
 *    w = (d * (2 * scale + 1)) * (value + shift)
 */
#include "quant/quant.h"

#include "quant/grid.h"
#include "src/base/half.h"

enum { N = 256, BYTES = 56 };

typedef struct block {
    uint8_t p[32];
    uint8_t ph[16];
    uint8_t s[4][2];
} block;
_Static_assert(sizeof(block) == BYTES, "a IQ1_M block as it is in files");

static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    const block *b = (const block *)blocks;
    for (int64_t i = 0; i < n_blocks; i++, b++, out += N) {
        unsigned half = 0;
        for (int n = 0; n < 4; n++) half |= (unsigned)(b->s[n][1] >> 4) << 4 * n;
        const float d = qn_f32_from_f16((uint16_t)half);
        for (int g = 0; g < 32; g++) {
            const int h = b->ph[g / 2] >> g % 2 * 4, p = b->p[g] | (h & 7) << 8;
            const int scale = qn_load_u16(b->s[g / 8]) >> g / 2 % 4 * 3 & 7;
            qn_grid1_decode(d * (float)(2 * scale + 1), qn_grid_iq1[p], h & 8 ? -0.125f : 0.125f, out + 8 * g);
        }
    }
}

extern const qn_fmt qn_fmt_iq1_m;
const qn_fmt qn_fmt_iq1_m = { 29, "IQ1_M", N, BYTES, decode, NULL, NULL, { 0 } };

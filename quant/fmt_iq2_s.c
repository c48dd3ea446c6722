/* IQ2_S: 256 weights in 32 groups of 8, a grid point of magnitudes and 8 signs each; a 4-bit scale for two groups.
 *    82 bytes, 2.5625 bits per weight.
 *    0        2                    34                         66                    74                  82
 *    | d: f16 | p[0] ... p[31]: u8 | sign[0] ... sign[31]: u8 | ph[0] ... ph[7]: u8 | s[0] ... s[7]: u8 |
 *    point of group g: p[g], above it bits 2 (g % 4), + 1 of ph[g / 4]; scale: nibble g / 2 % 2 of s[g / 4].
 *    w = ((d * (0.5 + scale)) * 0.25) * magnitude, sign flipped where its bit is set
 */
#include "quant/quant.h"

#include "quant/grid.h"
#include "src/base/half.h"

enum { N = 256, BYTES = 82 };

typedef struct block {
    uint8_t d[2];
    uint8_t p[32];
    uint8_t sign[32];
    uint8_t ph[8];
    uint8_t s[8];
} block;
_Static_assert(sizeof(block) == BYTES, "a IQ2_S block as it is in files");

static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    const block *b = (const block *)blocks;
    for (int64_t i = 0; i < n_blocks; i++, b++, out += N) {
        const float d = qn_f32_from_f16(qn_load_u16(b->d));
        for (int g = 0; g < 32; g++) {
            const int p = b->p[g] | (b->ph[g / 4] >> g % 4 * 2 & 3) << 8;
            const float dg = d * (0.5f + (float)(b->s[g / 4] >> g / 2 % 2 * 4 & 15)) * 0.25f;
            qn_grid2_decode(dg, qn_grid_iq2_s[p], b->sign[g], out + 8 * g);
        }
    }
}

extern const qn_fmt qn_fmt_iq2_s;
const qn_fmt qn_fmt_iq2_s = { 22, "IQ2_S", N, BYTES, decode, NULL, NULL, { 0 } };

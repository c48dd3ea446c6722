/* IQ3_S: 256 weights in 32 groups of 8: two grid points of four magnitudes, 8 signs; a 4-bit scale for four groups.
 *    110 bytes, 3.4375 bits per weight.
 *    0        2                    66                    74                         106                 110
 *    | d: f16 | p[0] ... p[63]: u8 | ph[0] ... ph[7]: u8 | sign[0] ... sign[31]: u8 | s[0] ... s[3]: u8 |
 *    point j (weights 4j .. 4j + 3): p[j], above it bit j % 8 of ph[j / 8];
 *    scale of group g: nibble g / 4 % 2 of s[g / 8].
 *    w = (d * (1 + 2 * scale)) * magnitude (1, 3 .. 15), sign flipped where its bit is set
 */
#include "quant/quant.h"

#include "quant/grid.h"
#include "src/base/half.h"

enum { N = 256, BYTES = 110 };

typedef struct block {
    uint8_t d[2];
    uint8_t p[64];
    uint8_t ph[8];
    uint8_t sign[32];
    uint8_t s[4];
} block;
_Static_assert(sizeof(block) == BYTES, "a IQ3_S block as it is in files");

static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    const block *b = (const block *)blocks;
    for (int64_t i = 0; i < n_blocks; i++, b++, out += N) {
        const float d = qn_f32_from_f16(qn_load_u16(b->d));
        for (int g = 0; g < 32; g++) {
            const unsigned high = b->ph[g / 4] >> g % 4 * 2;
            const unsigned p0 = b->p[2 * g] | (high & 1) << 8, p1 = b->p[2 * g + 1] | (high & 2) << 7;
            const float dg = d * (float)(1 + 2 * (b->s[g / 8] >> g / 4 % 2 * 4 & 15));
            qn_grid3_decode(dg, qn_grid_iq3_s[p0], qn_grid_iq3_s[p1], 1, 2, 0, b->sign[g], out + 8 * g);
        }
    }
}

extern const qn_fmt qn_fmt_iq3_s;
const qn_fmt qn_fmt_iq3_s = { 21, "IQ3_S", N, BYTES, decode, NULL, NULL, { 0 } };

/* IQ1_S: 256 weights in 8 sub-blocks of 32: four grid points of eight values -1, 0, 1, a 3-bit scale, a shift.
 *    50 bytes, 1.5625 bits per weight.
 *    0        2                    34                   50
 *    | d: f16 | p[0] ... p[31]: u8 | a[0] ... a[7]: u16 |
 *    point of group g (8 weights): p[g], above it bits 3 (g % 4) .. + 2 of a[g / 4];
 *    bits 12 .. 14 of a: scale; bit 15: shift is -1/8, else 1/8.
 *    w = (d * (2 * scale + 1)) * (value + shift)
 */
#include "quant/quant.h"

#include "quant/grid.h"
#include "src/base/half.h"

enum { N = 256, BYTES = 50 };

typedef struct block {
    uint8_t d[2];
    uint8_t p[32];
    uint8_t a[8][2];
} block;
_Static_assert(sizeof(block) == BYTES, "a IQ1_S block as it is in files");

static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    const block *b = (const block *)blocks;
    for (int64_t i = 0; i < n_blocks; i++, b++, out += N) {
        const float d = qn_f32_from_f16(qn_load_u16(b->d));
        for (int g = 0; g < 32; g++) {
            const int a = qn_load_u16(b->a[g / 4]), p = b->p[g] | (a >> g % 4 * 3 & 7) << 8;
            const float dg = d * (float)(2 * (a >> 12 & 7) + 1);
            qn_grid1_decode(dg, qn_grid_iq1[p], a & 0x8000 ? -0.125f : 0.125f, out + 8 * g);
        }
    }
}

extern const qn_fmt qn_fmt_iq1_s;
const qn_fmt qn_fmt_iq1_s = { 19, "IQ1_S", N, BYTES, decode, NULL, NULL, { 0 } };

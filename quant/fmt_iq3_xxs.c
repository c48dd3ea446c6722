/* IQ3_XXS: 256 weights in 8 sub-blocks of 32: eight grid points of four magnitudes, their signs, a 4-bit scale.
 *    98 bytes, 3.0625 bits per weight.
 *    0        2                    66                   98
 *    | d: f16 | p[0] ... p[63]: u8 | a[0] ... a[7]: u32 |
 *    p[2g], p[2g + 1]: points of group g (8 weights);
 *    bits 7 (g % 4) .. + 6 of a[g / 4]: its signs, the eighth makes them even; bits 28 .. 31 of a: scale.
 *    w = ((d * (0.5 + scale)) * 0.5) * magnitude (4, 12 .. 52, 62), sign flipped where its bit is set
 */
#include "quant/quant.h"

#include "quant/grid.h"
#include "src/base/half.h"

enum { N = 256, BYTES = 98 };

typedef struct block {
    uint8_t d[2];
    uint8_t p[64];
    uint8_t a[8][4];
} block;
_Static_assert(sizeof(block) == BYTES, "a IQ3_XXS block as it is in files");

static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    const block *b = (const block *)blocks;
    for (int64_t i = 0; i < n_blocks; i++, b++, out += N) {
        const float d = qn_f32_from_f16(qn_load_u16(b->d));
        for (int g = 0; g < 32; g++) {
            const uint32_t a = qn_load_u32(b->a[g / 4]);
            const float dg = d * (0.5f + (float)(a >> 28)) * 0.5f;
            const uint16_t p0 = qn_grid_iq3_xxs[b->p[2 * g]], p1 = qn_grid_iq3_xxs[b->p[2 * g + 1]];
            qn_grid3_decode(dg, p0, p1, 4, 8, 2, qn_even_signs(a >> g % 4 * 7), out + 8 * g);
        }
    }
}

extern const qn_fmt qn_fmt_iq3_xxs;
const qn_fmt qn_fmt_iq3_xxs = { 18, "IQ3_XXS", N, BYTES, decode, NULL, NULL, { 0 } };

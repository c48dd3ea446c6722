/* IQ2_XXS: 256 weights in 8 sub-blocks of 32: four grid points of eight magnitudes, their signs, a 4-bit scale.
 *    66 bytes, 2.0625 bits per weight.
 *    0        2                              66
 *    | d: f16 | k = 0 .. 7: p[4]: u8, a: u32 |
 *    p[g]: point of group g; bits 7g .. 7g + 6 of a: its signs, the eighth makes them even;
 *    bits 28 .. 31 of a: scale.
 *    w = ((d * (0.5 + scale)) * 0.25) * magnitude, sign flipped where its bit is set
 */
#include "quant/quant.h"

#include "quant/grid.h"
#include "src/base/half.h"

enum { N = 256, BYTES = 66 };

typedef struct block {
    uint8_t d[2];
    struct {
        uint8_t p[4];
        uint8_t a[4];
    } sub[8];
} block;
_Static_assert(sizeof(block) == BYTES, "a IQ2_XXS block as it is in files");

static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    const block *b = (const block *)blocks;
    for (int64_t i = 0; i < n_blocks; i++, b++, out += N) {
        const float d = qn_f32_from_f16(qn_load_u16(b->d));
        for (int k = 0; k < 8; k++) {
            const uint32_t a = qn_load_u32(b->sub[k].a);
            const float dk = d * (0.5f + (float)(a >> 28)) * 0.25f;
            for (int g = 0; g < 4; g++)
                qn_grid2_decode(dk, qn_grid_iq2_xxs[b->sub[k].p[g]], qn_even_signs(a >> 7 * g), out + 32 * k + 8 * g);
        }
    }
}

extern const qn_fmt qn_fmt_iq2_xxs;
const qn_fmt qn_fmt_iq2_xxs = { 16, "IQ2_XXS", N, BYTES, decode, NULL, NULL, { 0 } };

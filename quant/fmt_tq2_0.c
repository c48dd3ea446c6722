/* TQ2_0: 256 weights of -1, 0, 1 (and 2) times a scale, two bits each. 66 bytes, 2.0625 bits per weight.
 *    0                    64       66
 *    | q[0] ... q[63]: u8 | d: f16 |
 *    weight i = 128 h + 32 p + l: bits 2p, 2p + 1 of q[32 h + l].    w = d * (q2 - 1)
 */
#include "quant/quant.h"

#include "src/base/half.h"

enum { N = 256, BYTES = 66 };

typedef struct block {
    uint8_t q[64];
    uint8_t d[2];
} block;
_Static_assert(sizeof(block) == BYTES, "a TQ2_0 block as it is in files");

static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    const block *b = (const block *)blocks;
    for (int64_t i = 0; i < n_blocks; i++, b++, out += N) {
        const float d = qn_f32_from_f16(qn_load_u16(b->d));
        for (int k = 0; k < 8; k++)
            for (int l = 0; l < 32; l++) out[32 * k + l] = d * (float)((b->q[k / 4 * 32 + l] >> k % 4 * 2 & 3) - 1);
    }
}

extern const qn_fmt qn_fmt_tq2_0;
const qn_fmt qn_fmt_tq2_0 = { 35, "TQ2_0", N, BYTES, decode, NULL, NULL, { 0 } };

/* IQ4_NL: 32 weights on sixteen uneven levels, one scale. 18 bytes, 4.5 bits per weight.
 *    0        2                                       18
 *    | d: f16 | q[0] q[1] ... q[15]: two nibbles each |
 *    low nibble of q[j]: weight j, high nibble: weight j + 16.    w = d * level[nibble]
 */
#include "quant/quant.h"

#include "quant/iq4_levels.h"
#include "src/base/half.h"

enum { N = 32, BYTES = 18 };

typedef struct block {
    uint8_t d[2];
    uint8_t q[16];
} block;
_Static_assert(sizeof(block) == BYTES, "a IQ4_NL block as it is in files");

static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    const block *b = (const block *)blocks;
    for (int64_t i = 0; i < n_blocks; i++, b++, out += N) {
        const float d = qn_f32_from_f16(qn_load_u16(b->d));
        for (int j = 0; j < 16; j++) {
            out[j] = d * qn_iq4_level(b->q[j]);
            out[j + 16] = d * qn_iq4_level(b->q[j] >> 4);
        }
    }
}

static void pack(const qn_fields *f, uint8_t *bytes)
{
    block *b = (block *)bytes;
    qn_store_f16(b->d, f->d);
    for (int j = 0; j < 16; j++) b->q[j] = (uint8_t)(f->code[j] | f->code[j + 16] << 4);
}

extern const qn_fmt qn_fmt_iq4_nl;

static void encode(const float *w, const float *importance, int64_t n_blocks, uint8_t *out)
{
    qn_encode_baseline(&qn_fmt_iq4_nl, w, importance, n_blocks, out);
}

const qn_fmt qn_fmt_iq4_nl = { 20, "IQ4_NL", N, BYTES, decode, encode, pack, { QN_GRID_SCALE, 1, 16, 0, 0, 0, qn_iq4_levels } };

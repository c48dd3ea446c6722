/* IQ4_XS: 256 weights on sixteen uneven levels, 8 sub-blocks of 32, each with a signed 6-bit scale.
 *    136 bytes, 4.25 bits per weight.
 *    0        2         4                     8                     136
 *    | d: f16 | sh: u16 | sl[0] ... sl[3]: u8 | q[0] ... q[127]: u8 |
 *    scale of sub-block k: nibble k % 2 of sl[k / 2], above it bits 2k, 2k + 1 of sh.
 *    sub-block k: low nibble of q[16 k + j]: weight 32 k + j, high nibble: weight 32 k + j + 16.
 *    w = (d * (scale - 32)) * level[nibble]
 */
#include "quant/quant.h"

#include "quant/iq4_levels.h"
#include "src/base/half.h"

#include <string.h>

enum { N = 256, BYTES = 136 };

typedef struct block {
    uint8_t d[2];
    uint8_t sh[2];
    uint8_t sl[4];
    uint8_t q[128];
} block;
_Static_assert(sizeof(block) == BYTES, "a IQ4_XS block as it is in files");

static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    const block *b = (const block *)blocks;
    for (int64_t i = 0; i < n_blocks; i++, b++, out += N) {
        const float d = qn_f32_from_f16(qn_load_u16(b->d));
        const uint8_t *q = b->q;
        const int sh = qn_load_u16(b->sh);
        for (int k = 0; k < 8; k++, q += 16) {
            const int scale = (b->sl[k / 2] >> k % 2 * 4 & 15) | (sh >> 2 * k & 3) << 4;
            const float dk = d * (float)(scale - 32);
            for (int j = 0; j < 16; j++) {
                out[32 * k + j] = dk * qn_iq4_level(q[j]);
                out[32 * k + j + 16] = dk * qn_iq4_level(q[j] >> 4);
            }
        }
    }
}

static void pack(const qn_fields *f, uint8_t *bytes)
{
    block *b = (block *)bytes;
    qn_store_f16(b->d, f->d);
    uint32_t high = 0;
    memset(b->sl, 0, sizeof b->sl);
    for (int k = 0; k < 8; k++) {
        const int scale = f->scale[k] + 32;
        b->sl[k / 2] |= (uint8_t)((scale & 15) << k % 2 * 4);
        high |= (uint32_t)(scale >> 4) << 2 * k;
        for (int j = 0; j < 16; j++) b->q[16 * k + j] = (uint8_t)(f->code[32 * k + j] | f->code[32 * k + j + 16] << 4);
    }
    b->sh[0] = (uint8_t)high;
    b->sh[1] = (uint8_t)(high >> 8);
}

extern const qn_fmt qn_fmt_iq4_xs;

static void encode(const float *w, const float *importance, int64_t n_blocks, uint8_t *out)
{
    qn_encode_baseline(&qn_fmt_iq4_xs, w, importance, n_blocks, out);
}

const qn_fmt qn_fmt_iq4_xs = { 23, "IQ4_XS", N, BYTES, decode, encode, pack, { QN_GRID_SCALE, 8, 16, 0, -32, 31, qn_iq4_levels } };

/* MXFP4 (OCP microscaling): 32 4-bit floats, one power of two. 17 bytes, 4.25 bits per weight.
 *    0       1                                       17
 *    | e: u8 | q[0] q[1] ... q[15]: two nibbles each |
 *    low nibble of q[j]: weight j, high nibble: weight j + 16.
 *    w = 2^(e - 127) * fp4(nibble), taken as 2^(e - 128) * (2 * fp4)
 */
#include "quant/quant.h"

#include "quant/fp4.h"

enum { N = 32, BYTES = 17 };

typedef struct block {
    uint8_t e;
    uint8_t q[16];
} block;
_Static_assert(sizeof(block) == BYTES, "a MXFP4 block as it is in files");

static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    const block *b = (const block *)blocks;
    for (int64_t i = 0; i < n_blocks; i++, b++, out += N) {
        const float d = qn_e8m0_half(b->e);
        for (int j = 0; j < 16; j++) {
            out[j] = d * qn_fp4_doubled(b->q[j]);
            out[j + 16] = d * qn_fp4_doubled(b->q[j] >> 4);
        }
    }
}

static void pack(const qn_fields *f, uint8_t *bytes)
{
    block *b = (block *)bytes;
    static const uint8_t order[15] = { 15, 14, 13, 12, 11, 10, 9, 0, 1, 2, 3, 4, 5, 6, 7 }; /* codes by rising level */
    b->e = qn_e8m0_from_half(f->d);
    for (int j = 0; j < 16; j++) b->q[j] = (uint8_t)(order[f->code[j]] | order[f->code[j + 16]] << 4);
}

extern const qn_fmt qn_fmt_mxfp4;

static void encode(const float *w, const float *importance, int64_t n_blocks, uint8_t *out)
{
    qn_encode_baseline(&qn_fmt_mxfp4, w, importance, n_blocks, out);
}

const qn_fmt qn_fmt_mxfp4 = { 39, "MXFP4", N, BYTES, decode, encode, pack, { QN_GRID_POWER, 1, 15, 0, 0, 0, qn_fp4_rising } };

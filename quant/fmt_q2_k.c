/* Q2_K: 256 weights in 16 sub-blocks of 16, each with a 4-bit scale and a 4-bit minimum.
 *    84 bytes, 2.625 bits per weight.
 *    0                         16                   80       82          84
 *    | s[0] s[1] ... s[15]: u8 | q[0] ... q[63]: u8 | d: f16 | dmin: f16 |
 *    s[k]: low nibble the scale, high nibble the minimum of sub-block k = i / 16.
 *    weight i = 128 h + 32 p + l: bits 2p, 2p + 1 of q[32 h + l].    w = (d * scale) * q2 - (dmin * min)
 */
#include "quant/quant.h"

#include "src/base/half.h"

enum { N = 256, BYTES = 84 };

typedef struct block {
    uint8_t s[16];
    uint8_t q[64];
    uint8_t d[2];
    uint8_t dmin[2];
} block;
_Static_assert(sizeof(block) == BYTES, "a Q2_K block as it is in files");

static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    const block *b = (const block *)blocks;
    for (int64_t i = 0; i < n_blocks; i++, b++, out += N) {
        const float d = qn_f32_from_f16(qn_load_u16(b->d));
        const float dmin = qn_f32_from_f16(qn_load_u16(b->dmin));
        for (int k = 0; k < 16; k++) {
            const float dk = d * (float)(b->s[k] & 15), mk = dmin * (float)(b->s[k] >> 4);
            const uint8_t *q = b->q + k / 8 * 32 + k % 2 * 16;
            for (int l = 0; l < 16; l++) out[16 * k + l] = dk * (float)(q[l] >> k / 2 % 4 * 2 & 3) - mk;
        }
    }
}

static void pack(const qn_fields *f, uint8_t *bytes)
{
    block *b = (block *)bytes;
    qn_store_f16(b->d, f->d);
    qn_store_f16(b->dmin, f->m);
    for (int k = 0; k < 16; k++) b->s[k] = (uint8_t)(f->scale[k] | f->min[k] << 4);
    for (int h = 0; h < 2; h++)
        for (int l = 0; l < 32; l++) {
            const uint8_t *c = f->code + 128 * h + l;
            b->q[32 * h + l] = (uint8_t)(c[0] | c[32] << 2 | c[64] << 4 | c[96] << 6);
        }
}

extern const qn_fmt qn_fmt_q2_k;

static void encode(const float *w, const float *importance, int64_t n_blocks, uint8_t *out)
{
    qn_encode_baseline(&qn_fmt_q2_k, w, importance, n_blocks, out);
}

const qn_fmt qn_fmt_q2_k = { 10, "Q2_K", N, BYTES, decode, encode, pack, { QN_GRID_AFFINE, 16, 4, 0, 0, 15, NULL } };

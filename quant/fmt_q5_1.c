/* Q5_1: 32 weights, a scale and a minimum. 24 bytes, 6 bits per weight.
 *    0        2        4         8                                       24
 *    | d: f16 | m: f16 | qh: u32 | q[0] q[1] ... q[15]: two nibbles each |
 *    low nibble of q[j]: weight j, high nibble: weight j + 16; bit i of qh: bit 4 of weight i.    w = d * q5 + m
 */
#include "quant/quant.h"

#include "src/base/half.h"

enum { N = 32, BYTES = 24 };

typedef struct block {
    uint8_t d[2];
    uint8_t m[2];
    uint8_t qh[4];
    uint8_t q[16];
} block;
_Static_assert(sizeof(block) == BYTES, "a Q5_1 block as it is in files");

static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    const block *b = (const block *)blocks;
    for (int64_t i = 0; i < n_blocks; i++, b++, out += N) {
        const float d = qn_f32_from_f16(qn_load_u16(b->d));
        const float m = qn_f32_from_f16(qn_load_u16(b->m));
        for (int j = 0; j < 16; j++) {
            const int lo = (b->q[j] & 15) | (b->qh[j / 8] >> j % 8 & 1) << 4;
            const int hi = b->q[j] >> 4 | (b->qh[2 + j / 8] >> j % 8 & 1) << 4;
            out[j] = d * (float)lo + m;
            out[j + 16] = d * (float)hi + m;
        }
    }
}

static void pack(const qn_fields *f, uint8_t *bytes)
{
    block *b = (block *)bytes;
    qn_store_f16(b->d, f->d);
    qn_store_f16(b->m, -f->m);
    uint32_t high = 0;
    for (int j = 0; j < 32; j++) high |= (uint32_t)(f->code[j] >> 4) << j;
    for (int j = 0; j < 4; j++) b->qh[j] = (uint8_t)(high >> 8 * j);
    for (int j = 0; j < 16; j++) b->q[j] = (uint8_t)((f->code[j] & 15) | (f->code[j + 16] & 15) << 4);
}

extern const qn_fmt qn_fmt_q5_1;

static void encode(const float *w, const float *importance, int64_t n_blocks, uint8_t *out)
{
    qn_encode_baseline(&qn_fmt_q5_1, w, importance, n_blocks, out);
}

const qn_fmt qn_fmt_q5_1 = { 7, "Q5_1", N, BYTES, decode, encode, pack, { QN_GRID_AFFINE, 1, 32, 0, 0, 0, NULL } };

/* Q3_K: 256 weights in 16 sub-blocks of 16, each with a signed 6-bit scale. 110 bytes, 3.4375 bits per weight.
 *    0                       32                   96                   108      110
 *    | qh[0] ... qh[31]: u8  | q[0] ... q[63]: u8 | s[0] ... s[11]: u8 | d: f16 |
 *    weight i = 128 h + 32 p + l: low bits 2p, 2p + 1 of q[32 h + l]; high bit 4 h + p of qh[l].
 *    scale of sub-block k = i / 16: low nibble of s[k] for k < 8, high nibble of s[k - 8] else;
 *    above it bits 2 (k / 4), + 1 of s[8 + k % 4].
 *    w = (d * (scale - 32)) * (q3 - 4)
 */
#include "quant/quant.h"

#include "src/base/half.h"

#include <string.h>

enum { N = 256, BYTES = 110 };

typedef struct block {
    uint8_t qh[32];
    uint8_t q[64];
    uint8_t s[12];
    uint8_t d[2];
} block;
_Static_assert(sizeof(block) == BYTES, "a Q3_K block as it is in files");

static int sub_scale(const block *b, int k)
{
    const int low = k < 8 ? b->s[k] & 15 : b->s[k - 8] >> 4;
    return low | (b->s[8 + k % 4] >> k / 4 * 2 & 3) << 4;
}

static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    const block *b = (const block *)blocks;
    for (int64_t i = 0; i < n_blocks; i++, b++, out += N) {
        const float d = qn_f32_from_f16(qn_load_u16(b->d));
        for (int k = 0; k < 16; k++) {
            const float dk = d * (float)(sub_scale(b, k) - 32);
            const uint8_t *q = b->q + k / 8 * 32 + k % 2 * 16, *qh = b->qh + k % 2 * 16;
            for (int l = 0; l < 16; l++) {
                const int low = q[l] >> k / 2 % 4 * 2 & 3, high = qh[l] >> k / 2 & 1;
                out[16 * k + l] = dk * (float)((low | high << 2) - 4);
            }
        }
    }
}

static void pack(const qn_fields *f, uint8_t *bytes)
{
    block *b = (block *)bytes;
    qn_store_f16(b->d, f->d);
    memset(b->qh, 0, sizeof b->qh);
    memset(b->s, 0, sizeof b->s);
    for (int k = 0; k < 16; k++) {
        const int scale = f->scale[k] + 32;
        b->s[k % 8] |= (uint8_t)((scale & 15) << k / 8 * 4);
        b->s[8 + k % 4] |= (uint8_t)(scale >> 4 << k / 4 * 2);
    }
    for (int h = 0; h < 2; h++)
        for (int l = 0; l < 32; l++) {
            const uint8_t *c = f->code + 128 * h + l;
            b->q[32 * h + l] = (uint8_t)((c[0] & 3) | (c[32] & 3) << 2 | (c[64] & 3) << 4 | (c[96] & 3) << 6);
            b->qh[l] |= (uint8_t)((c[0] >> 2 | c[32] >> 2 << 1 | c[64] >> 2 << 2 | c[96] >> 2 << 3) << 4 * h);
        }
}

extern const qn_fmt qn_fmt_q3_k;

static void encode(const float *w, const float *importance, int64_t n_blocks, uint8_t *out)
{
    qn_encode_baseline(&qn_fmt_q3_k, w, importance, n_blocks, out);
}

const qn_fmt qn_fmt_q3_k = { 11, "Q3_K", N, BYTES, decode, encode, pack, { QN_GRID_SCALE, 16, 8, 4, -32, 31, NULL } };

/* Q6_K: 256 weights in 16 sub-blocks of 16, each with a signed 8-bit scale. 210 bytes, 6.5625 bits per weight.
 *    0                       128                    192                  208      210
 *    | ql[0] ... ql[127]: u8 | qh[0] ... qh[63]: u8 | s[0] ... s[15]: i8 | d: f16 |
 *    weight i = 128 h + 32 p + l: low nibble (p < 2) or high nibble of ql[64 h + 32 (p % 2) + l];
 *    above it bits 2p, 2p + 1 of qh[32 h + l].
 *    w = (d * s[i / 16]) * (q6 - 32)
 */
#include "quant/quant.h"

#include "src/base/half.h"

#include <string.h>

enum { N = 256, BYTES = 210 };

typedef struct block {
    uint8_t ql[128];
    uint8_t qh[64];
    int8_t s[16];
    uint8_t d[2];
} block;
_Static_assert(sizeof(block) == BYTES, "a Q6_K block as it is in files");

static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    const block *b = (const block *)blocks;
    for (int64_t i = 0; i < n_blocks; i++, b++, out += N) {
        const float d = qn_f32_from_f16(qn_load_u16(b->d));
        for (int k = 0; k < 16; k++) {
            const int h = k / 8, p = k / 2 % 4;
            const float dk = d * (float)b->s[k];
            const uint8_t *ql = b->ql + 64 * h + 32 * (p % 2) + k % 2 * 16, *qh = b->qh + 32 * h + k % 2 * 16;
            for (int l = 0; l < 16; l++) {
                const int low = ql[l] >> p / 2 * 4 & 15, high = qh[l] >> 2 * p & 3;
                out[16 * k + l] = dk * (float)((low | high << 4) - 32);
            }
        }
    }
}

static void pack(const qn_fields *f, uint8_t *bytes)
{
    block *b = (block *)bytes;
    qn_store_f16(b->d, f->d);
    memcpy(b->s, f->scale, sizeof b->s);
    for (int h = 0; h < 2; h++)
        for (int l = 0; l < 32; l++) {
            const uint8_t *c = f->code + 128 * h + l;
            b->ql[64 * h + l] = (uint8_t)((c[0] & 15) | (c[64] & 15) << 4);
            b->ql[64 * h + 32 + l] = (uint8_t)((c[32] & 15) | (c[96] & 15) << 4);
            b->qh[32 * h + l] = (uint8_t)(c[0] >> 4 | c[32] >> 4 << 2 | c[64] >> 4 << 4 | c[96] >> 4 << 6);
        }
}

extern const qn_fmt qn_fmt_q6_k;

static void encode(const float *w, const float *importance, int64_t n_blocks, uint8_t *out)
{
    qn_encode_baseline(&qn_fmt_q6_k, w, importance, n_blocks, out);
}

const qn_fmt qn_fmt_q6_k = { 14, "Q6_K", N, BYTES, decode, encode, pack, { QN_GRID_SCALE, 16, 64, 32, -128, 127, NULL } };

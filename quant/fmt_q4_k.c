/* Q4_K: 256 weights in 8 sub-blocks of 32, each with a 6-bit scale and a 6-bit minimum.
 *    144 bytes, 4.5 bits per weight.
 *    0        2           4                            16                    144
 *    | d: f16 | dmin: f16 | s[0] ... s[11]: k_scales.h | q[0] ... q[127]: u8 |
 *    weight i = 64 g + l: low nibble of q[32 g + l] for l < 32, high nibble of q[32 g + l - 32] else;
 *    sub-block i / 32.
 *    w = (d * scale) * nibble - (dmin * min)
 */
#include "quant/quant.h"

#include "quant/k_scales.h"
#include "src/base/half.h"

enum { N = 256, BYTES = 144 };

typedef struct block {
    uint8_t d[2];
    uint8_t dmin[2];
    uint8_t s[12];
    uint8_t q[128];
} block;
_Static_assert(sizeof(block) == BYTES, "a Q4_K block as it is in files");

static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    const block *b = (const block *)blocks;
    for (int64_t i = 0; i < n_blocks; i++, b++, out += N) {
        const float d = qn_f32_from_f16(qn_load_u16(b->d));
        const float dmin = qn_f32_from_f16(qn_load_u16(b->dmin));
        for (int k = 0; k < 8; k++) {
            int scale, min;
            qn_k_scale_min(b->s, k, &scale, &min);
            const float dk = d * (float)scale, mk = dmin * (float)min;
            const uint8_t *q = b->q + k / 2 * 32;
            for (int l = 0; l < 32; l++) out[32 * k + l] = dk * (float)(q[l] >> k % 2 * 4 & 15) - mk;
        }
    }
}

static void pack(const qn_fields *f, uint8_t *bytes)
{
    block *b = (block *)bytes;
    qn_store_f16(b->d, f->d);
    qn_store_f16(b->dmin, f->m);
    qn_k_scale_min_store(b->s, f->scale, f->min);
    for (int g = 0; g < 4; g++)
        for (int l = 0; l < 32; l++) b->q[32 * g + l] = (uint8_t)(f->code[64 * g + l] | f->code[64 * g + 32 + l] << 4);
}

extern const qn_fmt qn_fmt_q4_k;

static void encode(const float *w, const float *importance, int64_t n_blocks, uint8_t *out)
{
    qn_encode_baseline(&qn_fmt_q4_k, w, importance, n_blocks, out);
}

const qn_fmt qn_fmt_q4_k = { 12, "Q4_K", N, BYTES, decode, encode, pack, { QN_GRID_AFFINE, 8, 16, 0, 0, 63, NULL } };

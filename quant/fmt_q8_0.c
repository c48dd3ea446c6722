/* Q8_0: 32 weights, one scale. 34 bytes, 8.5 bits per weight.
 *    0        2                         34
 *    | d: f16 | q[0] q[1] ... q[31]: i8 |        w[i] = d * q[i]
 */
#include "quant/quant.h"

#include "src/base/half.h"

enum { N = 32, BYTES = 34 };

typedef struct block {
    uint8_t d[2];
    int8_t q[32];
} block;
_Static_assert(sizeof(block) == BYTES, "a Q8_0 block as it is in files");

static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    const block *b = (const block *)blocks;
    for (int64_t i = 0; i < n_blocks; i++, b++, out += N) {
        const float d = qn_f32_from_f16(qn_load_u16(b->d));
        for (int j = 0; j < N; j++) out[j] = d * (float)b->q[j];
    }
}

static void pack(const qn_fields *f, uint8_t *bytes)
{
    block *b = (block *)bytes;
    qn_store_f16(b->d, f->d);
    for (int j = 0; j < N; j++) b->q[j] = (int8_t)(f->code[j] - 128);
}

extern const qn_fmt qn_fmt_q8_0;

static void encode(const float *w, const float *importance, int64_t n_blocks, uint8_t *out)
{
    qn_encode_baseline(&qn_fmt_q8_0, w, importance, n_blocks, out);
}

const qn_fmt qn_fmt_q8_0 = { 8, "Q8_0", N, BYTES, decode, encode, pack, { QN_GRID_SCALE, 1, 256, 128, 0, 0, NULL } };

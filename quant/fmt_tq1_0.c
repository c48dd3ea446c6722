/* TQ1_0: 256 weights of -1, 0, 1 times a scale, five in a byte. 54 bytes, 1.6875 bits per weight.
 *    0                    48                    52       54
 *    | q[0] ... q[47]: u8 | q[48] ... q[51]: u8 | d: f16 |
 *    A byte holds a fraction of 256: multiplied by 3^n modulo 256, then by 3, the part above 256 is its digit n (0,
 *    1, 2).
 *    digit n of q[l], l < 32:   weight 32 n + l             n = 0 .. 4
 *    digit n of q[32 + l], l < 16: weight 160 + 16 n + l    n = 0 .. 4
 *    digit n of q[48 + l], l < 4:  weight 240 + 4 n + l     n = 0 .. 3        w = d * (digit - 1)
 */
#include "quant/quant.h"

#include "src/base/half.h"

enum { N = 256, BYTES = 54 };

typedef struct block {
    uint8_t q[52];
    uint8_t d[2];
} block;
_Static_assert(sizeof(block) == BYTES, "a TQ1_0 block as it is in files");

/* n_digits digits of n_bytes bytes, digit by digit; returns the place behind the last weight. */
static float *decode_digits(const uint8_t *q, int n_bytes, int n_digits, float d, float *out)
{
    unsigned power = 1;
    for (int n = 0; n < n_digits; n++, power *= 3)
        for (int l = 0; l < n_bytes; l++) {
            const unsigned fraction = q[l] * power & 255;
            *out++ = d * (float)((int)(fraction * 3 >> 8) - 1);
        }
    return out;
}

static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    const block *b = (const block *)blocks;
    for (int64_t i = 0; i < n_blocks; i++, b++, out += N) {
        const float d = qn_f32_from_f16(qn_load_u16(b->d));
        float *w = out;
        w = decode_digits(b->q, 32, 5, d, w);
        w = decode_digits(b->q + 32, 16, 5, d, w);
        decode_digits(b->q + 48, 4, 4, d, w);
    }
}

extern const qn_fmt qn_fmt_tq1_0;
const qn_fmt qn_fmt_tq1_0 = { 34, "TQ1_0", N, BYTES, decode, NULL, NULL, { 0 } };

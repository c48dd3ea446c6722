#include "quant/quant.h"

#include <string.h>

/* I64: one whole number, rounded to nearest above 2^24. */
static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    for (int64_t i = 0; i < n_blocks; i++) {
        int64_t v;
        memcpy(&v, blocks + i * (int64_t)sizeof v, sizeof v);
        out[i] = (float)v;
    }
}

extern const qn_fmt qn_fmt_i64;
const qn_fmt qn_fmt_i64 = { 27, "I64", 1, 8, decode, NULL, NULL, { 0 } };

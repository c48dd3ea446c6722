#include "quant/quant.h"

#include <string.h>

/* I32: one whole number, rounded to nearest above 2^24. */
static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    for (int64_t i = 0; i < n_blocks; i++) {
        int32_t v;
        memcpy(&v, blocks + i * (int64_t)sizeof v, sizeof v);
        out[i] = (float)v;
    }
}

extern const qn_fmt qn_fmt_i32;
const qn_fmt qn_fmt_i32 = { 26, "I32", 1, 4, decode, NULL, NULL, { 0 } };

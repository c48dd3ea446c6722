#include "quant/quant.h"

#include <string.h>

/* I8: one whole number a byte; exact in float32. */
static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    for (int64_t i = 0; i < n_blocks; i++) {
        int8_t v;
        memcpy(&v, blocks + i * (int64_t)sizeof v, sizeof v);
        out[i] = (float)v;
    }
}

extern const qn_fmt qn_fmt_i8;
const qn_fmt qn_fmt_i8 = { 24, "I8", 1, 1, decode, NULL, NULL, { 0 } };

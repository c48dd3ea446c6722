#include "quant/quant.h"

#include <string.h>

/* I16: one whole number; exact in float32. */
static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    for (int64_t i = 0; i < n_blocks; i++) {
        int16_t v;
        memcpy(&v, blocks + i * (int64_t)sizeof v, sizeof v);
        out[i] = (float)v;
    }
}

extern const qn_fmt qn_fmt_i16;
const qn_fmt qn_fmt_i16 = { 25, "I16", 1, 2, decode, NULL, NULL, { 0 } };

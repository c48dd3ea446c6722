#include "quant/quant.h"

#include <string.h>

/* F64: one double, rounded to nearest; beyond float32 it becomes an infinity. */
static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    for (int64_t i = 0; i < n_blocks; i++) {
        double v;
        memcpy(&v, blocks + i * (int64_t)sizeof v, sizeof v);
        out[i] = (float)v;
    }
}

extern const qn_fmt qn_fmt_f64;
const qn_fmt qn_fmt_f64 = { 28, "F64", 1, 8, decode, NULL, NULL, { 0 } };

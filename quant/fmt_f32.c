#include "quant/quant.h"

#include <string.h>

static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    memcpy(out, blocks, (size_t)n_blocks * sizeof *out);
}

extern const qn_fmt qn_fmt_f32;
const qn_fmt qn_fmt_f32 = { 0, "F32", 1, 4, decode };

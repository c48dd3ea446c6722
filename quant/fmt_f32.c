#include "quant/quant.h"

#include "src/base/half.h"

#include <string.h>

static void decode(const uint8_t *blocks, int64_t n_blocks, float *out)
{
    memcpy(out, blocks, (size_t)n_blocks * sizeof *out);
}

static void encode(const float *w, const float *importance, int64_t n_blocks, uint8_t *out)
{
    (void)importance;
    for (int64_t i = 0; i < n_blocks; i++) {
        const float x = qn_clamp_finite(w[i], 0x1.fffffep127f);
        memcpy(out + 4 * i, &x, 4);
    }
}

extern const qn_fmt qn_fmt_f32;
const qn_fmt qn_fmt_f32 = { 0, "F32", 1, 4, decode, encode, NULL, { 0 } };

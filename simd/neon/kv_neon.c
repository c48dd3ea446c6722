/* The formats of the KV cache. Rows are a multiple of 8 long. */
#include "simd/neon/neon.h"

static void f16_encode(const float *x, int32_t dim, void *codes, uint16_t *scales)
{
    uint16_t *out = codes;
    (void)scales;
    for (int32_t d = 0; d + 4 <= dim; d += 4) vst1_u16(out + d, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(x + d))));
}

void qn_rows_init_kv_neon(qn_kernels *k)
{
    qn_kernels_kv_set(k, "F16", f16_encode, NULL, NULL);
}

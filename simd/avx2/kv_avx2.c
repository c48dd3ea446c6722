/* The formats of the KV cache. Rows are a multiple of 8 long. */
#include "simd/avx2/avx2.h"

static void f16_encode(const float *x, int32_t dim, void *codes, uint16_t *scales)
{
    uint16_t *out = codes;
    (void)scales;
    for (int32_t d = 0; d + 8 <= dim; d += 8) _mm_storeu_si128((__m128i *)(out + d), _mm256_cvtps_ph(_mm256_loadu_ps(x + d), _MM_FROUND_TO_NEAREST_INT));
}

void qn_rows_init_kv_avx2(qn_kernels *k)
{
    qn_kernels_kv_set(k, "F16", f16_encode, NULL, NULL);
}

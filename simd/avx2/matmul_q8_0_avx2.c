/* Q8_0 x A16. Bytes k0 k2 k1 k3: the odd ones are pair 1 of a line, sign and all. */
#include "simd/avx2/matmul_a16_avx2.h"

QN_INLINE const void *lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_q8_0 *)panel)[b / 2].q[b % 2];
}

QN_INLINE __m256i pair(const void *lines_of, int32_t h, int32_t p)
{
    const __m256i line = qn_line_half((const uint32_t *)lines_of + p / 2 * QN_PANEL, h);
    return _mm256_srai_epi16(p % 2 ? line : _mm256_slli_epi16(line, 8), 8);
}

QN_INLINE __m256 scale(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    (void)half;
    return qn_load8_f16(((const qn_panel_q8_0 *)panel)[b / 2].d[b % 2] + 8 * h);
}

static const a16_format format = { lines, pair, scale, NULL, 0, 1, sizeof(qn_panel_q8_0) / 2, INT32_MAX };

void qn_matmul_q8_0_avx2(const qn_matmul_args *a)
{
    qn_matmul_a16_avx2(a, &format);
}

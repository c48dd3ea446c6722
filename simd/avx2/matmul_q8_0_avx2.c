/* Q8_0 x A16 and A8. Bytes k0 k2 k1 k3: the odd ones are pair 1 of a line, sign and all. */
#include "simd/avx2/matmul_a8_avx2.h"

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

/* Lines k0 k2 k1 k3 and k4 k6 k5 k7. */
QN_INLINE __m256i bytes(const void *lines_of, int32_t h, int32_t g)
{
    const uint32_t *line = (const uint32_t *)lines_of + g / 2 * 2 * QN_PANEL;
    const __m256i a = qn_line_half(line, h), b = qn_line_half(line + QN_PANEL, h);
    return g % 2 ? qn_even_odd8(_mm256_srli_epi16(a, 8), b) : qn_even_odd8(a, _mm256_slli_epi16(b, 8));
}

static const a16_format format = { lines, pair, scale, NULL, 0, 1, sizeof(qn_panel_q8_0) / 2, INT32_MAX };
static const a8_format format8 = { &format, bytes, 0, 128 };

void qn_matmul_q8_0_avx2(const qn_matmul_args *a)
{
    qn_matmul_a16_avx2(a, &format);
}

void qn_matmul8_q8_0_avx2(const qn_matmul_args *a)
{
    qn_matmul_a8_avx2(a, &format8);
}

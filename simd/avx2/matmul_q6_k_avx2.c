/* Q6_K x A16 and A8. */
#include "simd/avx2/matmul_a8_avx2.h"

QN_INLINE const void *lines(const uint8_t *panel, int64_t b)
{
    return &((const qn_panel_q6_k *)panel)[b / 8].b[b % 8];
}

/* 4 lines, then two planes of 8 pairs each. */
QN_INLINE __m256i pair(const void *lines_of, int32_t h, int32_t p)
{
    const uint32_t *line = lines_of;
    const __m256i low = qn_nibble_pair(qn_line_half(line + p / 4 * QN_PANEL, h), p % 4);
    const __m256i high = qn_plane_pair(qn_line_half(line + (4 + p / 8) * QN_PANEL, h), p % 8, 2);
    return _mm256_or_si256(low, high);
}

QN_INLINE __m256 scale(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    const qn_panel_q6_k *p = (const qn_panel_q6_k *)panel + b / 8;
    return _mm256_mul_ps(qn_load8_f16(p->d + 8 * h), qn_load8_i8(p->sc[2 * (b % 8) + half] + 8 * h));
}

QN_INLINE __m256i bytes(const void *lines_of, int32_t h, int32_t g)
{
    return qn_nibble_field_bytes(lines_of, h, g, 2);
}

static const a16_format format = { lines, pair, scale, NULL, 32, 2, sizeof(qn_panel_q6_k) / 8, 4 };
static const a8_format format8 = { &format, bytes, 32, 63 };

void qn_matmul_q6_k_avx2(const qn_matmul_args *a)
{
    qn_matmul_a16_avx2(a, &format);
}

void qn_matmul8_q6_k_avx2(const qn_matmul_args *a)
{
    qn_matmul_a8_avx2(a, &format8);
}

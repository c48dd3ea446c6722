/* Q5_0 x A16 and A8. The plane holds inverted bits, so that taking it away gives the signed code. */
#include "simd/avx2/matmul_a8_avx2.h"

QN_INLINE const void *lines(const uint8_t *panel, int64_t b)
{
    return &((const qn_panel_q5_0 *)panel)[b / 2].b[b % 2];
}

/* 4 lines, then the plane. */
QN_INLINE __m256i pair(const void *lines_of, int32_t h, int32_t p)
{
    const uint32_t *line = lines_of;
    const __m256i low = qn_nibble_pair(qn_line_half(line + p / 4 * QN_PANEL, h), p % 4);
    const __m256i high = qn_plane_pair(qn_line_half(line + 4 * QN_PANEL, h), p, 1);
    return _mm256_sub_epi16(low, high);
}

QN_INLINE __m256 scale(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    (void)half;
    return qn_load8_f16(((const qn_panel_q5_0 *)panel)[b / 2].d[b % 2] + 8 * h);
}

/* The plane turned over again: 16 more than the signed code. */
QN_INLINE __m256i bytes(const void *lines_of, int32_t h, int32_t g)
{
    return _mm256_xor_si256(qn_nibble_field_bytes(lines_of, h, g, 1), _mm256_set1_epi8(16));
}

static const a16_format format = { lines, pair, scale, NULL, 0, 1, sizeof(qn_panel_q5_0) / 2, 4 };
static const a8_format format8 = { &format, bytes, 16, 31 };

void qn_matmul_q5_0_avx2(const qn_matmul_args *a)
{
    qn_matmul_a16_avx2(a, &format);
}

void qn_matmul8_q5_0_avx2(const qn_matmul_args *a)
{
    qn_matmul_a8_avx2(a, &format8);
}

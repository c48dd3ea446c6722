/* Q4_1 x A16 and A8. */
#include "simd/avx2/matmul_a8_avx2.h"

QN_INLINE const void *lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_q4_1 *)panel)[b].q;
}

QN_INLINE __m256i pair(const void *lines_of, int32_t h, int32_t p)
{
    return qn_nibble_pair(qn_line_half((const uint32_t *)lines_of + p / 4 * QN_PANEL, h), p % 4);
}

QN_INLINE __m256 scale(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    (void)half;
    return qn_load8_f16(((const qn_panel_q4_1 *)panel)[b].d + 8 * h);
}

QN_INLINE __m256 min(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    (void)half;
    return qn_load8_f16(((const qn_panel_q4_1 *)panel)[b].m + 8 * h);
}

static const a16_format format = { lines, pair, scale, min, 0, 1, sizeof(qn_panel_q4_1), INT32_MAX };
static const a8_format format8 = { &format, qn_nibble_bytes, 0, 15 };

void qn_matmul_q4_1_avx2(const qn_matmul_args *a)
{
    qn_matmul_a16_avx2(a, &format);
}

void qn_matmul8_q4_1_avx2(const qn_matmul_args *a)
{
    qn_matmul_a8_avx2(a, &format8);
}

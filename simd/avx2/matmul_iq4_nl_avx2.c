/* IQ4_NL x A16 and A8. */
#include "quant/iq4_levels.h"
#include "simd/avx2/matmul_a8_avx2.h"

enum { OFFSET = 128 }; /* makes the levels bytes without sign */

QN_INLINE const void *lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_iq4_nl *)panel)[b / 2].q[b % 2];
}

QN_INLINE __m256i pair(const void *lines_of, int32_t h, int32_t p)
{
    return qn_level_pair(qn_line_half((const uint32_t *)lines_of + p / 4 * QN_PANEL, h), p % 4, qn_level_table(qn_iq4_levels, OFFSET));
}

QN_INLINE __m256 scale(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    (void)half;
    return qn_load8_f16(((const qn_panel_iq4_nl *)panel)[b / 2].d[b % 2] + 8 * h);
}

QN_INLINE __m256i bytes(const void *lines_of, int32_t h, int32_t g)
{
    return _mm256_shuffle_epi8(qn_level_table(qn_iq4_levels, 0), qn_nibble_bytes(lines_of, h, g));
}

static const a16_format format = { lines, pair, scale, NULL, OFFSET, 1, sizeof(qn_panel_iq4_nl) / 2, 4 };
static const a8_format format8 = { &format, bytes, 0, 128 };

void qn_matmul_iq4_nl_avx2(const qn_matmul_args *a)
{
    qn_matmul_a16_avx2(a, &format);
}

void qn_matmul8_iq4_nl_avx2(const qn_matmul_args *a)
{
    qn_matmul_a8_avx2(a, &format8);
}

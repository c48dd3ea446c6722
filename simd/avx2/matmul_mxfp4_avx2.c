/* MXFP4 x A16 and A8. */
#include "quant/fp4.h"
#include "simd/avx2/matmul_a8_avx2.h"

enum { OFFSET = 12 }; /* makes the doubled values bytes without sign */

QN_INLINE const void *lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_mxfp4 *)panel)[b / 4].q[b % 4];
}

QN_INLINE __m256i pair(const void *lines_of, int32_t h, int32_t p)
{
    return qn_level_pair(qn_line_half((const uint32_t *)lines_of + p / 4 * QN_PANEL, h), p % 4, qn_level_table(qn_fp4_doubles, OFFSET));
}

/* The bits of 2^(e - 128): (e - 1) << 23, but (e + 1) << 21 for the subnormal e = 0 and 1, where it is the larger one. */
QN_INLINE __m256 scale(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    const qn_panel_mxfp4 *p = (const qn_panel_mxfp4 *)panel + b / 4;
    const __m256i e = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p->e[b % 4] + 8 * h)));
    const __m256i normal = _mm256_sub_epi32(_mm256_slli_epi32(e, 23), _mm256_set1_epi32(1 << 23));
    const __m256i subnormal = _mm256_add_epi32(_mm256_slli_epi32(e, 21), _mm256_set1_epi32(1 << 21));
    (void)half;
    return _mm256_castsi256_ps(_mm256_max_epi32(normal, subnormal));
}

QN_INLINE __m256i bytes(const void *lines_of, int32_t h, int32_t g)
{
    return _mm256_shuffle_epi8(qn_level_table(qn_fp4_doubles, OFFSET), qn_nibble_bytes(lines_of, h, g));
}

static const a16_format format = { lines, pair, scale, NULL, OFFSET, 1, sizeof(qn_panel_mxfp4) / 4, 4 };
static const a8_format format8 = { &format, bytes, OFFSET, 24 };

void qn_matmul_mxfp4_avx2(const qn_matmul_args *a)
{
    qn_matmul_a16_avx2(a, &format);
}

void qn_matmul8_mxfp4_avx2(const qn_matmul_args *a)
{
    qn_matmul_a8_avx2(a, &format8);
}

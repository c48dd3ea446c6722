/* Q2_K x A16 and A8. */
#include "simd/avx2/matmul_a8_avx2.h"

QN_INLINE const void *lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_q2_k *)panel)[b / 8].q[b % 8];
}

QN_INLINE __m256i pair(const void *lines_of, int32_t h, int32_t p)
{
    const __m256i line = qn_line_half((const uint32_t *)lines_of + p / 8 * QN_PANEL, h);
    return p % 8 == 7 ? _mm256_srli_epi16(line, 14) : _mm256_and_si256(_mm256_srli_epi16(line, 2 * (p % 8)), _mm256_set1_epi32(0x00030003));
}

/* Scale (low nibbles) and minimum (high) of rows 8h .. */
QN_INLINE __m256i scales(const qn_panel_q2_k *p, int64_t b, int32_t h, int32_t half)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p->s[2 * (b % 8) + half] + 8 * h)));
}

QN_INLINE __m256 scale(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    const qn_panel_q2_k *p = (const qn_panel_q2_k *)panel + b / 8;
    const __m256i s = _mm256_and_si256(scales(p, b, h, half), _mm256_set1_epi32(15));
    return _mm256_mul_ps(qn_load8_f16(p->d + 8 * h), _mm256_cvtepi32_ps(s));
}

QN_INLINE __m256 min(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    const qn_panel_q2_k *p = (const qn_panel_q2_k *)panel + b / 8;
    const __m256i m = _mm256_srli_epi32(scales(p, b, h, half), 4);
    return _mm256_xor_ps(_mm256_mul_ps(qn_load8_f16(p->dmin + 8 * h), _mm256_cvtepi32_ps(m)), _mm256_set1_ps(-0.0f));
}

QN_INLINE __m256i bytes(const void *lines_of, int32_t h, int32_t g)
{
    return qn_field_bytes(lines_of, 0, h, g, 2, 0);
}

static const a16_format format = { lines, pair, scale, min, 0, 2, sizeof(qn_panel_q2_k) / 8, 4 };
static const a8_format format8 = { &format, bytes, 0, 3 };

void qn_matmul_q2_k_avx2(const qn_matmul_args *a)
{
    qn_matmul_a16_avx2(a, &format);
}

void qn_matmul8_q2_k_avx2(const qn_matmul_args *a)
{
    qn_matmul_a8_avx2(a, &format8);
}

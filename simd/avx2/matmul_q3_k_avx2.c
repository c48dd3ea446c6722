/* Q3_K x A16 and A8. */
#include "simd/avx2/matmul_a8_avx2.h"

QN_INLINE const void *lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_q3_k *)panel)[b / 8].q[b % 8];
}

/* Bits n of the lines' halves, which pair 15 is made of, moved down to bit `to`. */
QN_INLINE __m256i top_bit(const uint32_t *line, int32_t h, int32_t to)
{
    const __m256i v = _mm256_srli_epi16(qn_line_half(line + to * QN_PANEL, h), 15 - to);
    return to ? _mm256_and_si256(v, _mm256_set1_epi16((int16_t)(1 << to))) : v;
}

/* 5 pairs a line. */
QN_INLINE __m256i pair(const void *lines_of, int32_t h, int32_t p)
{
    const uint32_t *line = lines_of;
    if (p == 15) return _mm256_or_si256(_mm256_or_si256(top_bit(line, h, 0), top_bit(line, h, 1)), top_bit(line, h, 2));
    const __m256i v = qn_line_half(line + p / 5 * QN_PANEL, h);
    return _mm256_and_si256(_mm256_srli_epi16(v, 3 * (p % 5)), _mm256_set1_epi16(7));
}

/* Scales of 16 rows as bytes, made at once for both halves of the rows: the compiler joins the two calls. */
QN_INLINE __m256 scale(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    const qn_panel_q3_k *p = (const qn_panel_q3_k *)panel + b / 8;
    const __m128i sl = _mm_load_si128((const __m128i *)p->sl[b % 8]), sh = _mm_load_si128((const __m128i *)p->sh[b % 8 / 2]);
    const __m128i low = _mm_and_si128(half ? _mm_srli_epi16(sl, 4) : sl, _mm_set1_epi8(15));
    const __m128i up = _mm_srl_epi16(sh, _mm_cvtsi32_si128((int32_t)(b % 2 * 4 + 2 * half)));
    const __m128i high = _mm_slli_epi16(_mm_and_si128(up, _mm_set1_epi8(3)), 4);
    const __m128i s = _mm_sub_epi8(_mm_or_si128(low, high), _mm_set1_epi8(32));
    const __m256i wide = _mm256_cvtepi8_epi32(h ? _mm_unpackhi_epi64(s, s) : s);
    return _mm256_mul_ps(qn_load8_f16(p->d + 8 * h), _mm256_cvtepi32_ps(wide));
}

QN_INLINE __m256i bytes(const void *lines_of, int32_t h, int32_t g)
{
    const int32_t p = 4 * (g / 2) + g % 2;
    return _mm256_or_si256(pair(lines_of, h, p), _mm256_slli_epi16(pair(lines_of, h, p + 2), 8));
}

static const a16_format format = { lines, pair, scale, NULL, 4, 2, sizeof(qn_panel_q3_k) / 8, 4 };
static const a8_format format8 = { &format, bytes, 4, 7 };

void qn_matmul_q3_k_avx2(const qn_matmul_args *a)
{
    qn_matmul_a16_avx2(a, &format);
}

void qn_matmul8_q3_k_avx2(const qn_matmul_args *a)
{
    qn_matmul_a8_avx2(a, &format8);
}

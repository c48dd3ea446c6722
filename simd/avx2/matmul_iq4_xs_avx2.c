/* IQ4_XS x A16 and A8. */
#include "quant/iq4_levels.h"
#include "simd/avx2/matmul_a8_avx2.h"

enum { OFFSET = 128 }; /* makes the levels bytes without sign */

QN_INLINE const void *lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_iq4_xs *)panel)[b / 8].q[b % 8];
}

QN_INLINE __m256i pair(const void *lines_of, int32_t h, int32_t p)
{
    return qn_level_pair(qn_line_half((const uint32_t *)lines_of + p / 4 * QN_PANEL, h), p % 4, qn_level_table(qn_iq4_levels, OFFSET));
}

/* Scales of 16 rows as bytes, made at once for both halves of the rows: the compiler joins the two calls. */
QN_INLINE __m256 scale(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    const qn_panel_iq4_xs *p = (const qn_panel_iq4_xs *)panel + b / 8;
    const __m128i sl = _mm_load_si128((const __m128i *)p->sl[b % 8 / 2]), sh = _mm_load_si128((const __m128i *)p->sh[b % 8 / 4]);
    const __m128i low = _mm_and_si128(_mm_srl_epi16(sl, _mm_cvtsi32_si128((int32_t)(b % 2 * 4))), _mm_set1_epi8(15));
    const __m128i up = _mm_srl_epi16(sh, _mm_cvtsi32_si128((int32_t)(b % 4 * 2)));
    const __m128i high = _mm_slli_epi16(_mm_and_si128(up, _mm_set1_epi8(3)), 4);
    const __m128i s = _mm_sub_epi8(_mm_or_si128(low, high), _mm_set1_epi8(32));
    const __m256i wide = _mm256_cvtepi8_epi32(h ? _mm_unpackhi_epi64(s, s) : s);
    (void)half;
    return _mm256_mul_ps(qn_load8_f16(p->d + 8 * h), _mm256_cvtepi32_ps(wide));
}

QN_INLINE __m256i bytes(const void *lines_of, int32_t h, int32_t g)
{
    return _mm256_shuffle_epi8(qn_level_table(qn_iq4_levels, 0), qn_nibble_bytes(lines_of, h, g));
}

static const a16_format format = { lines, pair, scale, NULL, OFFSET, 1, sizeof(qn_panel_iq4_xs) / 8, 4 };
static const a8_format format8 = { &format, bytes, 0, 128 };

void qn_matmul_iq4_xs_avx2(const qn_matmul_args *a)
{
    qn_matmul_a16_avx2(a, &format);
}

void qn_matmul8_iq4_xs_avx2(const qn_matmul_args *a)
{
    qn_matmul_a8_avx2(a, &format8);
}

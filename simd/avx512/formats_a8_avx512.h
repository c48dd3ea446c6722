/* The quantised formats as matmul_a8_avx512.h takes them: bytes of 16 rows in the order of A8 activations, unsigned with an offset, or signed. */
#ifndef QN_SIMD_FORMATS_A8_AVX512_H
#define QN_SIMD_FORMATS_A8_AVX512_H

#include "simd/avx512/formats_a16_avx512.h"

typedef struct a8_format {
    const a16_format *base;                             /* lines, scales, minimums                                        */
    __m512i (*bytes)(const void *lines, int32_t g);     /* of 16 rows: g even columns 4g + (0 4 1 5), odd 4g - 4 + (2 6 3 7) */
    int32_t offset;                                     /* byte - offset is the weight                                    */
    int32_t most;                                       /* largest byte; above 127: they are signed                       */
} a8_format;

/** Shift of 16-bit halves, to the right where `by` is negative. */
QN_INLINE __m512i qn_shift16(__m512i x, const int32_t by)
{
    return by > 0 ? _mm512_slli_epi16(x, by) : by < 0 ? _mm512_srli_epi16(x, -by) : x;
}

/** The even bytes of a beside the odd ones of b. */
QN_INLINE __m512i qn_even_odd16(__m512i a, __m512i b)
{
    return _mm512_ternarylogic_epi32(_mm512_set1_epi16(255), a, b, 0xca);
}

/** Codes of a block's nibble lines. */
QN_INLINE __m512i qn_nibble_bytes16(const void *lines, int32_t g)
{
    const __m512i line = qn_line16(lines, g / 2);
    return _mm512_and_si512(g % 2 ? _mm512_srli_epi16(line, 4) : line, _mm512_set1_epi8(15));
}

/** Fields of `bits` a weight, of the planes that start at line i, moved to bit `to` of each byte; the other bits are anything. */
QN_INLINE __m512i qn_field_bytes16(const void *lines, int32_t i, int32_t g, const int32_t bits, const int32_t to)
{
    const int32_t per_line = 16 / bits, p = 4 * (g / 2) + g % 2, at = p % per_line * bits; /* the odd bytes are of the pair after next */
    const __m512i plane = qn_line16(lines, i + p / per_line);
    return qn_even_odd16(qn_shift16(plane, to - at), qn_shift16(plane, to + 8 - at - 2 * bits));
}

/** x with the bits of `mask` taken from field. */
QN_INLINE __m512i qn_join_bytes16(__m512i x, __m512i field, const int32_t mask)
{
    return _mm512_ternarylogic_epi32(x, field, _mm512_set1_epi8((int8_t)mask), 0xf8);
}

static const a8_format qn_q4_0_a8_avx512 = { &qn_q4_0_avx512, qn_nibble_bytes16, 8, 15 };
static const a8_format qn_q4_1_a8_avx512 = { &qn_q4_1_avx512, qn_nibble_bytes16, 0, 15 };
static const a8_format qn_q4_k_a8_avx512 = { &qn_q4_k_avx512, qn_nibble_bytes16, 0, 15 };

/* The plane holds inverted bits: x | (~field & mask). */
QN_INLINE __m512i q5_0_bytes(const void *lines, int32_t g)
{
    return _mm512_ternarylogic_epi32(qn_nibble_bytes16(lines, g), qn_field_bytes16(lines, 4, g, 1, 4), _mm512_set1_epi8(16), 0xf2);
}

QN_INLINE __m512i q5_1_bytes(const void *lines, int32_t g)
{
    return qn_join_bytes16(qn_nibble_bytes16(lines, g), qn_field_bytes16(lines, 4, g, 1, 4), 16);
}

static const a8_format qn_q5_0_a8_avx512 = { &qn_q5_0_avx512, q5_0_bytes, 16, 31 };
static const a8_format qn_q5_1_a8_avx512 = { &qn_q5_1_avx512, q5_1_bytes, 0, 31 };
static const a8_format qn_q5_k_a8_avx512 = { &qn_q5_k_avx512, q5_1_bytes, 0, 31 };

QN_INLINE __m512i q6_k_bytes(const void *lines, int32_t g)
{
    return qn_join_bytes16(qn_nibble_bytes16(lines, g), qn_field_bytes16(lines, 4, g, 2, 4), 0x30);
}

static const a8_format qn_q6_k_a8_avx512 = { &qn_q6_k_avx512, q6_k_bytes, 32, 63 };

/* Lines k0 k2 k1 k3 and k4 k6 k5 k7. */
QN_INLINE __m512i q8_0_bytes(const void *lines, int32_t g)
{
    const __m512i a = qn_line16(lines, g / 2 * 2), b = qn_line16(lines, g / 2 * 2 + 1);
    return g % 2 ? qn_even_odd16(_mm512_srli_epi16(a, 8), b) : qn_even_odd16(a, _mm512_slli_epi16(b, 8));
}

static const a8_format qn_q8_0_a8_avx512 = { &qn_q8_0_avx512, q8_0_bytes, 0, 128 };

QN_INLINE __m512i q2_k_codes(const void *lines, int32_t g)
{
    return _mm512_and_si512(qn_field_bytes16(lines, 0, g, 2, 0), _mm512_set1_epi8(3));
}

static const a8_format qn_q2_k_a8_avx512 = { &qn_q2_k_avx512, q2_k_codes, 0, 3 };

QN_INLINE __m512i q3_k_bytes(const void *lines, int32_t g)
{
    const int32_t p = 4 * (g / 2) + g % 2;
    return _mm512_or_si512(q3_k_code(lines, p), _mm512_slli_epi16(q3_k_code(lines, p + 2), 8));
}

static const a8_format qn_q3_k_a8_avx512 = { &qn_q3_k_avx512, q3_k_bytes, 4, 7 };

/** Levels of a block's nibble lines, plus the format's offset. */
QN_INLINE __m512i qn_level_bytes16(const void *lines, int32_t g, const int8_t *level, const int32_t offset)
{
    const __m512i table = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)level));
    return _mm512_shuffle_epi8(_mm512_add_epi8(table, _mm512_set1_epi8((int8_t)offset)), qn_nibble_bytes16(lines, g));
}

QN_INLINE __m512i iq4_bytes(const void *lines, int32_t g)
{
    return qn_level_bytes16(lines, g, qn_iq4_levels, 0);
}

static const a8_format qn_iq4_nl_a8_avx512 = { &qn_iq4_nl_avx512, iq4_bytes, 0, 128 };
static const a8_format qn_iq4_xs_a8_avx512 = { &qn_iq4_xs_avx512, iq4_bytes, 0, 128 };

enum { FP4_OFFSET = 12 }; /* makes the doubled values bytes without sign */

QN_INLINE __m512i mxfp4_bytes(const void *lines, int32_t g)
{
    return qn_level_bytes16(lines, g, qn_fp4_doubles, FP4_OFFSET);
}

static const a8_format qn_mxfp4_a8_avx512 = { &qn_mxfp4_avx512, mxfp4_bytes, FP4_OFFSET, 24 };

#endif

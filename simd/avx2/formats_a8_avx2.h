/* The quantised formats as matmul_a8_avx2.h takes them: bytes of 8 rows in the order of A8 activations, unsigned with an offset, or signed. */
#ifndef QN_SIMD_FORMATS_A8_AVX2_H
#define QN_SIMD_FORMATS_A8_AVX2_H

#include "simd/avx2/formats_a16_avx2.h"

typedef struct a8_format {
    const a16_format *base;                                    /* lines, scales, minimums                                        */
    __m256i (*bytes)(const void *lines, int32_t h, int32_t g); /* of rows 8h .. 8h + 7: g even columns 4g + (0 4 1 5), odd 4g - 4 + (2 6 3 7) */
    int32_t offset;                                            /* byte - offset is the weight                                    */
    int32_t most;                                              /* largest byte; above 127: they are signed                       */
} a8_format;

/** Shift of 16-bit halves, to the right where `by` is negative. */
QN_INLINE __m256i qn_shift8(__m256i x, const int32_t by)
{
    return by > 0 ? _mm256_slli_epi16(x, by) : by < 0 ? _mm256_srli_epi16(x, -by) : x;
}

/** The even bytes of a beside the odd ones of b. */
QN_INLINE __m256i qn_even_odd8(__m256i a, __m256i b)
{
    return _mm256_blendv_epi8(b, a, _mm256_set1_epi16(255));
}

/** Codes of a block's nibble lines. */
QN_INLINE __m256i qn_nibble_bytes(const void *lines, int32_t h, int32_t g)
{
    const __m256i line = qn_line8(lines, g / 2, h);
    return _mm256_and_si256(g % 2 ? _mm256_srli_epi16(line, 4) : line, _mm256_set1_epi8(15));
}

/** Fields of `bits` a weight, of the planes that start at line i, moved to bit `to` of each byte. */
QN_INLINE __m256i qn_field_bytes(const void *lines, int32_t i, int32_t h, int32_t g, const int32_t bits, const int32_t to)
{
    const int32_t per_line = 16 / bits, p = 4 * (g / 2) + g % 2, at = p % per_line * bits; /* the odd bytes are of the pair after next */
    const __m256i plane = qn_line8(lines, i + p / per_line, h);
    const __m256i both = qn_even_odd8(qn_shift8(plane, to - at), qn_shift8(plane, to + 8 - at - 2 * bits));
    return _mm256_and_si256(both, _mm256_set1_epi8((int8_t)(((1 << bits) - 1) << to)));
}

/** Nibbles with the fields above them. */
QN_INLINE __m256i qn_nibble_field_bytes(const void *lines, int32_t h, int32_t g, const int32_t bits)
{
    return _mm256_or_si256(qn_nibble_bytes(lines, h, g), qn_field_bytes(lines, 4, h, g, bits, 4));
}

static const a8_format qn_q4_0_a8_avx2 = { &qn_q4_0_avx2, qn_nibble_bytes, 8, 15 };
static const a8_format qn_q4_1_a8_avx2 = { &qn_q4_1_avx2, qn_nibble_bytes, 0, 15 };
static const a8_format qn_q4_k_a8_avx2 = { &qn_q4_k_avx2, qn_nibble_bytes, 0, 15 };

/* The plane turned over again: 16 more than the signed code. */
QN_INLINE __m256i q5_0_bytes(const void *lines, int32_t h, int32_t g)
{
    return _mm256_xor_si256(qn_nibble_field_bytes(lines, h, g, 1), _mm256_set1_epi8(16));
}

static const a8_format qn_q5_0_a8_avx2 = { &qn_q5_0_avx2, q5_0_bytes, 16, 31 };

QN_INLINE __m256i q5_1_bytes(const void *lines, int32_t h, int32_t g)
{
    return qn_nibble_field_bytes(lines, h, g, 1);
}

static const a8_format qn_q5_1_a8_avx2 = { &qn_q5_1_avx2, q5_1_bytes, 0, 31 };
static const a8_format qn_q5_k_a8_avx2 = { &qn_q5_k_avx2, q5_1_bytes, 0, 31 };

/* Lines k0 k2 k1 k3 and k4 k6 k5 k7. */
QN_INLINE __m256i q8_0_bytes(const void *lines, int32_t h, int32_t g)
{
    const __m256i a = qn_line8(lines, g / 2 * 2, h), b = qn_line8(lines, g / 2 * 2 + 1, h);
    return g % 2 ? qn_even_odd8(_mm256_srli_epi16(a, 8), b) : qn_even_odd8(a, _mm256_slli_epi16(b, 8));
}

static const a8_format qn_q8_0_a8_avx2 = { &qn_q8_0_avx2, q8_0_bytes, 0, 128 };

QN_INLINE __m256i q6_k_bytes(const void *lines, int32_t h, int32_t g)
{
    return qn_nibble_field_bytes(lines, h, g, 2);
}

static const a8_format qn_q6_k_a8_avx2 = { &qn_q6_k_avx2, q6_k_bytes, 32, 63 };

QN_INLINE __m256i q2_k_bytes(const void *lines, int32_t h, int32_t g)
{
    return qn_field_bytes(lines, 0, h, g, 2, 0);
}

static const a8_format qn_q2_k_a8_avx2 = { &qn_q2_k_avx2, q2_k_bytes, 0, 3 };

QN_INLINE __m256i q3_k_bytes(const void *lines, int32_t h, int32_t g)
{
    const int32_t p = 4 * (g / 2) + g % 2;
    return _mm256_or_si256(q3_k_pair(lines, h, p), _mm256_slli_epi16(q3_k_pair(lines, h, p + 2), 8));
}

static const a8_format qn_q3_k_a8_avx2 = { &qn_q3_k_avx2, q3_k_bytes, 4, 7 };

QN_INLINE __m256i iq4_bytes(const void *lines, int32_t h, int32_t g)
{
    return _mm256_shuffle_epi8(qn_level_table(qn_iq4_levels, 0), qn_nibble_bytes(lines, h, g));
}

static const a8_format qn_iq4_nl_a8_avx2 = { &qn_iq4_nl_avx2, iq4_bytes, 0, 128 };
static const a8_format qn_iq4_xs_a8_avx2 = { &qn_iq4_xs_avx2, iq4_bytes, 0, 128 };

QN_INLINE __m256i mxfp4_bytes(const void *lines, int32_t h, int32_t g)
{
    return _mm256_shuffle_epi8(qn_level_table(qn_fp4_doubles, FP4_OFFSET), qn_nibble_bytes(lines, h, g));
}

static const a8_format qn_mxfp4_a8_avx2 = { &qn_mxfp4_avx2, mxfp4_bytes, FP4_OFFSET, 24 };

#endif

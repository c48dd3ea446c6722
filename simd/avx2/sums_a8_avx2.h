/* Sums of A8 activations: what formats with an offset give too much, and what the minimums of halves are multiplied by. */
#ifndef QN_SIMD_SUMS_A8_AVX2_H
#define QN_SIMD_SUMS_A8_AVX2_H

#include "simd/avx2/avx2.h"

/* 8 sums of 4 columns each: the first 4 belong to the first half of the block. */
QN_INLINE __m256i sums_of_4(const int8_t *q)
{
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), _mm256_loadu_si256((const __m256i *)q));
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

/** Sums of the halves of the blocks b .. b + 3 of n, [block][half]; past n, of the last block. */
QN_INLINE __m256i qn_sums_of_8_halves(const int8_t *q, int64_t b, int64_t n)
{
    __m256i s[4];
    QN_UNROLL
    for (int32_t i = 0; i < 4; i++) s[i] = sums_of_4(q + QN_ACT_BLOCK * (b + i < n ? b + i : n - 1));
    s[0] = _mm256_hadd_epi32(_mm256_hadd_epi32(s[0], s[1]), _mm256_hadd_epi32(s[2], s[3])); /* first halves, then second ones */
    return _mm256_permutevar8x32_epi32(s[0], _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/** Sums of the blocks b .. b + 3 of n; past n, of the last block. */
QN_INLINE __m128i qn_sums_of_4_blocks(const int8_t *q, int64_t b, int64_t n)
{
    const __m256i s = qn_sums_of_8_halves(q, b, n);
    const __m128i lo = _mm256_castsi256_si128(s), hi = _mm256_extracti128_si256(s, 1);
    return _mm_hadd_epi32(lo, hi);
}

#endif

/* The quantised formats as matmul_a16_avx2.h takes them: pairs of int16 weights of 8 rows out of a block of 32, and its scales. */
#ifndef QN_SIMD_FORMATS_A16_AVX2_H
#define QN_SIMD_FORMATS_A16_AVX2_H

#include "quant/fp4.h"
#include "quant/iq4_levels.h"
#include "simd/avx2/avx2.h"

typedef struct a16_format {
    const void *(*lines)(const uint8_t *panel, int64_t b);                    /* codes of block b              */
    __m256i (*pair)(const void *lines, int32_t h, int32_t p);                 /* weights 2p, 2p + 1 of rows 8h .. 8h + 7, plus offset */
    __m256 (*scale)(const uint8_t *panel, int64_t b, int32_t h, int32_t half); /* of the half of 16 weights     */
    __m256 (*min)(const uint8_t *panel, int64_t b, int32_t h, int32_t half);  /* as scale; NULL: none           */
    int32_t offset;                                                           /* code - offset is the weight   */
    int32_t halves;                                                           /* scales in a block: 1 or 2     */
    int32_t block_bytes;                                                      /* of 16 rows, on average        */
    int32_t direct;                                                           /* tokens up to which unpacking does not pay (measured) */
} a16_format;

/** Rows 8h .. 8h + 7 of line i. */
QN_INLINE __m256i qn_line8(const void *lines, int32_t i, int32_t h)
{
    return _mm256_load_si256((const __m256i *)(((const qn_line *)lines)[i] + 8 * h));
}

/** Codes of pair p of a block's nibble lines. */
QN_INLINE __m256i qn_nibbles8(const void *lines, int32_t h, int32_t p)
{
    const __m256i line = qn_line8(lines, p / 4, h), shifted = p % 4 ? _mm256_srli_epi16(line, 4 * (p % 4)) : line;
    return p % 4 == 3 ? shifted : _mm256_and_si256(shifted, _mm256_set1_epi32(0x000f000f));
}

/** Bits of pair p (of `bits` a weight) of the planes that start at line i, moved to bits 4 and up. */
QN_INLINE __m256i qn_plane8(const void *lines, int32_t i, int32_t h, int32_t p, int32_t bits)
{
    const int32_t per_line = 16 / bits, by = p % per_line * bits - 4;
    const __m256i plane = qn_line8(lines, i + p / per_line, h);
    const __m256i shifted = by > 0 ? _mm256_srli_epi16(plane, by) : by < 0 ? _mm256_slli_epi16(plane, -by) : plane;
    return _mm256_and_si256(shifted, _mm256_set1_epi32(bits == 1 ? 0x00100010 : 0x00300030));
}

QN_INLINE __m256 qn_negate8(__m256 x)
{
    return _mm256_xor_ps(x, _mm256_set1_ps(-0.0f));
}

/* ---- Q4_0 ---- */

QN_INLINE const void *q4_0_lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_q4_0 *)panel)[b / 2].q[b % 2];
}

QN_INLINE __m256 q4_0_scale(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    (void)half;
    return qn_load8_f16(((const qn_panel_q4_0 *)panel)[b / 2].d[b % 2] + 8 * h);
}

static const a16_format qn_q4_0_avx2 = { q4_0_lines, qn_nibbles8, q4_0_scale, NULL, 8, 1, sizeof(qn_panel_q4_0) / 2, INT32_MAX };

/* ---- Q4_1 ---- */

QN_INLINE const void *q4_1_lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_q4_1 *)panel)[b].q;
}

QN_INLINE __m256 q4_1_scale(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    (void)half;
    return qn_load8_f16(((const qn_panel_q4_1 *)panel)[b].d + 8 * h);
}

QN_INLINE __m256 q4_1_min(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    (void)half;
    return qn_load8_f16(((const qn_panel_q4_1 *)panel)[b].m + 8 * h);
}

static const a16_format qn_q4_1_avx2 = { q4_1_lines, qn_nibbles8, q4_1_scale, q4_1_min, 0, 1, sizeof(qn_panel_q4_1), INT32_MAX };

/* ---- Q5_0: the plane holds inverted bits, so that taking it away gives the signed code ---- */

QN_INLINE const void *q5_0_lines(const uint8_t *panel, int64_t b)
{
    return &((const qn_panel_q5_0 *)panel)[b / 2].b[b % 2];
}

QN_INLINE __m256i q5_0_pair(const void *lines, int32_t h, int32_t p)
{
    return _mm256_sub_epi16(qn_nibbles8(lines, h, p), qn_plane8(lines, 4, h, p, 1));
}

QN_INLINE __m256 q5_0_scale(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    (void)half;
    return qn_load8_f16(((const qn_panel_q5_0 *)panel)[b / 2].d[b % 2] + 8 * h);
}

static const a16_format qn_q5_0_avx2 = { q5_0_lines, q5_0_pair, q5_0_scale, NULL, 0, 1, sizeof(qn_panel_q5_0) / 2, 4 };

/* ---- Q5_1 ---- */

QN_INLINE const void *q5_1_lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_q5_1 *)panel)[b].q;
}

QN_INLINE __m256i q5_1_pair(const void *lines, int32_t h, int32_t p)
{
    return _mm256_or_si256(qn_nibbles8(lines, h, p), qn_plane8(lines, 4, h, p, 1));
}

QN_INLINE __m256 q5_1_scale(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    (void)half;
    return qn_load8_f16(((const qn_panel_q5_1 *)panel)[b].d + 8 * h);
}

QN_INLINE __m256 q5_1_min(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    (void)half;
    return qn_load8_f16(((const qn_panel_q5_1 *)panel)[b].m + 8 * h);
}

static const a16_format qn_q5_1_avx2 = { q5_1_lines, q5_1_pair, q5_1_scale, q5_1_min, 0, 1, sizeof(qn_panel_q5_1), 12 };

/* ---- Q8_0: bytes k0 k2 k1 k3; the odd ones are pair 1 of a line, sign and all ---- */

QN_INLINE const void *q8_0_lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_q8_0 *)panel)[b / 2].q[b % 2];
}

QN_INLINE __m256i q8_0_pair(const void *lines, int32_t h, int32_t p)
{
    const __m256i line = qn_line8(lines, p / 2, h);
    return _mm256_srai_epi16(p % 2 ? line : _mm256_slli_epi16(line, 8), 8);
}

QN_INLINE __m256 q8_0_scale(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    (void)half;
    return qn_load8_f16(((const qn_panel_q8_0 *)panel)[b / 2].d[b % 2] + 8 * h);
}

static const a16_format qn_q8_0_avx2 = { q8_0_lines, q8_0_pair, q8_0_scale, NULL, 0, 1, sizeof(qn_panel_q8_0) / 2, INT32_MAX };

/* ---- Q4_K ---- */

QN_INLINE const void *q4_k_lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_q4_k *)panel)[b / 8].q[b % 8];
}

QN_INLINE __m256 q4_k_scale(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    const qn_panel_q4_k *p = (const qn_panel_q4_k *)panel + b / 8;
    (void)half;
    return _mm256_mul_ps(qn_load8_f16(p->d + 8 * h), qn_load8_u8(p->sc[b % 8] + 8 * h));
}

QN_INLINE __m256 q4_k_min(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    const qn_panel_q4_k *p = (const qn_panel_q4_k *)panel + b / 8;
    (void)half;
    return qn_negate8(_mm256_mul_ps(qn_load8_f16(p->dmin + 8 * h), qn_load8_u8(p->mn[b % 8] + 8 * h)));
}

static const a16_format qn_q4_k_avx2 = { q4_k_lines, qn_nibbles8, q4_k_scale, q4_k_min, 0, 1, sizeof(qn_panel_q4_k) / 8, 32 };

/* ---- Q5_K ---- */

QN_INLINE const void *q5_k_lines(const uint8_t *panel, int64_t b)
{
    return &((const qn_panel_q5_k *)panel)[b / 8].b[b % 8];
}

QN_INLINE __m256 q5_k_scale(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    const qn_panel_q5_k *p = (const qn_panel_q5_k *)panel + b / 8;
    (void)half;
    return _mm256_mul_ps(qn_load8_f16(p->d + 8 * h), qn_load8_u8(p->sc[b % 8] + 8 * h));
}

QN_INLINE __m256 q5_k_min(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    const qn_panel_q5_k *p = (const qn_panel_q5_k *)panel + b / 8;
    (void)half;
    return qn_negate8(_mm256_mul_ps(qn_load8_f16(p->dmin + 8 * h), qn_load8_u8(p->mn[b % 8] + 8 * h)));
}

static const a16_format qn_q5_k_avx2 = { q5_k_lines, q5_1_pair, q5_k_scale, q5_k_min, 0, 1, sizeof(qn_panel_q5_k) / 8, 8 };

/* ---- Q6_K: 4 lines, then two planes of 8 pairs each ---- */

QN_INLINE const void *q6_k_lines(const uint8_t *panel, int64_t b)
{
    return &((const qn_panel_q6_k *)panel)[b / 8].b[b % 8];
}

QN_INLINE __m256i q6_k_pair(const void *lines, int32_t h, int32_t p)
{
    return _mm256_or_si256(qn_nibbles8(lines, h, p), qn_plane8(lines, 4, h, p, 2));
}

QN_INLINE __m256 q6_k_scale(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    const qn_panel_q6_k *p = (const qn_panel_q6_k *)panel + b / 8;
    return _mm256_mul_ps(qn_load8_f16(p->d + 8 * h), qn_load8_i8(p->sc[2 * (b % 8) + half] + 8 * h));
}

static const a16_format qn_q6_k_avx2 = { q6_k_lines, q6_k_pair, q6_k_scale, NULL, 32, 2, sizeof(qn_panel_q6_k) / 8, 4 };

/* ---- Q2_K ---- */

QN_INLINE const void *q2_k_lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_q2_k *)panel)[b / 8].q[b % 8];
}

QN_INLINE __m256i q2_k_pair(const void *lines, int32_t h, int32_t p)
{
    const __m256i shifted = _mm256_srli_epi16(qn_line8(lines, p / 8, h), 2 * (p % 8));
    return p % 8 == 7 ? shifted : _mm256_and_si256(shifted, _mm256_set1_epi32(0x00030003));
}

/* Scale (low nibbles) and minimum (high) of rows 8h .. */
QN_INLINE __m256i q2_k_scales(const qn_panel_q2_k *p, int64_t b, int32_t h, int32_t half)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p->s[2 * (b % 8) + half] + 8 * h)));
}

QN_INLINE __m256 q2_k_scale(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    const qn_panel_q2_k *p = (const qn_panel_q2_k *)panel + b / 8;
    const __m256i s = _mm256_and_si256(q2_k_scales(p, b, h, half), _mm256_set1_epi32(15));
    return _mm256_mul_ps(qn_load8_f16(p->d + 8 * h), _mm256_cvtepi32_ps(s));
}

QN_INLINE __m256 q2_k_min(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    const qn_panel_q2_k *p = (const qn_panel_q2_k *)panel + b / 8;
    const __m256i m = _mm256_srli_epi32(q2_k_scales(p, b, h, half), 4);
    return qn_negate8(_mm256_mul_ps(qn_load8_f16(p->dmin + 8 * h), _mm256_cvtepi32_ps(m)));
}

static const a16_format qn_q2_k_avx2 = { q2_k_lines, q2_k_pair, q2_k_scale, q2_k_min, 0, 2, sizeof(qn_panel_q2_k) / 8, 4 };

/* ---- Q3_K ---- */

QN_INLINE const void *q3_k_lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_q3_k *)panel)[b / 8].q[b % 8];
}

/* The bit that line i has left over, as bit i of pair 15. */
QN_INLINE __m256i q3_k_top(const void *lines, int32_t i, int32_t h)
{
    const __m256i v = _mm256_srli_epi16(qn_line8(lines, i, h), 15 - i);
    return i ? _mm256_and_si256(v, _mm256_set1_epi16((int16_t)(1 << i))) : v;
}

/* 5 pairs a line. */
QN_INLINE __m256i q3_k_pair(const void *lines, int32_t h, int32_t p)
{
    if (p == 15) return _mm256_or_si256(_mm256_or_si256(q3_k_top(lines, 0, h), q3_k_top(lines, 1, h)), q3_k_top(lines, 2, h));
    return _mm256_and_si256(_mm256_srli_epi16(qn_line8(lines, p / 5, h), 3 * (p % 5)), _mm256_set1_epi16(7));
}

/* 6-bit scales whose low 4 bits are at `lo` of the bytes of sl and whose high 2 at `hi` of those of sh; 32 is their zero. Made for 16 rows: the
 * compiler joins the calls for both halves. */
QN_INLINE __m256 qn_scales6(const uint8_t *sl, int64_t lo, const uint8_t *sh, int64_t hi, int32_t h)
{
    const __m128i l = _mm_srl_epi16(_mm_load_si128((const __m128i *)sl), _mm_cvtsi64_si128(lo));
    const __m128i up = _mm_srl_epi16(_mm_load_si128((const __m128i *)sh), _mm_cvtsi64_si128(hi));
    const __m128i both = _mm_or_si128(_mm_and_si128(l, _mm_set1_epi8(15)), _mm_slli_epi16(_mm_and_si128(up, _mm_set1_epi8(3)), 4));
    const __m128i s = _mm_sub_epi8(both, _mm_set1_epi8(32));
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(h ? _mm_unpackhi_epi64(s, s) : s));
}

QN_INLINE __m256 q3_k_scale(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    const qn_panel_q3_k *p = (const qn_panel_q3_k *)panel + b / 8;
    return _mm256_mul_ps(qn_load8_f16(p->d + 8 * h), qn_scales6(p->sl[b % 8], 4 * half, p->sh[b % 8 / 2], b % 2 * 4 + 2 * half, h));
}

static const a16_format qn_q3_k_avx2 = { q3_k_lines, q3_k_pair, q3_k_scale, NULL, 4, 2, sizeof(qn_panel_q3_k) / 8, 4 };

/* ---- IQ4_NL, IQ4_XS, MXFP4: a code stands for one of 16 levels ---- */

/* They make the levels bytes without sign. */
enum { IQ4_OFFSET = 128, FP4_OFFSET = 12 };

/* 16 levels as bytes, plus the format's offset so that none is negative. */
QN_INLINE __m256i qn_level_table(const int8_t *level, const int32_t offset)
{
    const __m256i table = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)level));
    return _mm256_add_epi8(table, _mm256_set1_epi8((int8_t)offset));
}

/* Codes of a nibble line become bytes by one look-up for pairs 0 and 2, one for 1 and 3. */
QN_INLINE __m256i qn_levels8(const void *lines, int32_t h, int32_t p, __m256i table)
{
    const __m256i line = qn_line8(lines, p / 4, h);
    const __m256i code = _mm256_and_si256(p % 2 ? _mm256_srli_epi16(line, 4) : line, _mm256_set1_epi8(15));
    const __m256i bytes = _mm256_shuffle_epi8(table, code);
    return p % 4 < 2 ? _mm256_and_si256(bytes, _mm256_set1_epi16(255)) : _mm256_srli_epi16(bytes, 8);
}

QN_INLINE const void *iq4_nl_lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_iq4_nl *)panel)[b / 2].q[b % 2];
}

QN_INLINE __m256i iq4_pair(const void *lines, int32_t h, int32_t p)
{
    return qn_levels8(lines, h, p, qn_level_table(qn_iq4_levels, IQ4_OFFSET));
}

QN_INLINE __m256 iq4_nl_scale(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    (void)half;
    return qn_load8_f16(((const qn_panel_iq4_nl *)panel)[b / 2].d[b % 2] + 8 * h);
}

static const a16_format qn_iq4_nl_avx2 = { iq4_nl_lines, iq4_pair, iq4_nl_scale, NULL, IQ4_OFFSET, 1, sizeof(qn_panel_iq4_nl) / 2, 4 };

QN_INLINE const void *iq4_xs_lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_iq4_xs *)panel)[b / 8].q[b % 8];
}

QN_INLINE __m256 iq4_xs_scale(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    const qn_panel_iq4_xs *p = (const qn_panel_iq4_xs *)panel + b / 8;
    (void)half;
    return _mm256_mul_ps(qn_load8_f16(p->d + 8 * h), qn_scales6(p->sl[b % 8 / 2], b % 2 * 4, p->sh[b % 8 / 4], b % 4 * 2, h));
}

static const a16_format qn_iq4_xs_avx2 = { iq4_xs_lines, iq4_pair, iq4_xs_scale, NULL, IQ4_OFFSET, 1, sizeof(qn_panel_iq4_xs) / 8, 4 };

QN_INLINE const void *mxfp4_lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_mxfp4 *)panel)[b / 4].q[b % 4];
}

QN_INLINE __m256i mxfp4_pair(const void *lines, int32_t h, int32_t p)
{
    return qn_levels8(lines, h, p, qn_level_table(qn_fp4_doubles, FP4_OFFSET));
}

/* The bits of 2^(e - 128): (e - 1) << 23, but (e + 1) << 21 for the subnormal e = 0 and 1, where it is the larger one. */
QN_INLINE __m256 mxfp4_scale(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    const qn_panel_mxfp4 *p = (const qn_panel_mxfp4 *)panel + b / 4;
    const __m256i e = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p->e[b % 4] + 8 * h)));
    const __m256i normal = _mm256_sub_epi32(_mm256_slli_epi32(e, 23), _mm256_set1_epi32(1 << 23));
    const __m256i subnormal = _mm256_add_epi32(_mm256_slli_epi32(e, 21), _mm256_set1_epi32(1 << 21));
    (void)half;
    return _mm256_castsi256_ps(_mm256_max_epi32(normal, subnormal));
}

static const a16_format qn_mxfp4_avx2 = { mxfp4_lines, mxfp4_pair, mxfp4_scale, NULL, FP4_OFFSET, 1, sizeof(qn_panel_mxfp4) / 4, 4 };

#endif

/* The quantised formats as matmul_a16_avx512.h takes them: pairs of int16 weights of 16 rows out of a block of 32, and its scales. */
#ifndef QN_SIMD_FORMATS_A16_AVX512_H
#define QN_SIMD_FORMATS_A16_AVX512_H

#include "quant/fp4.h"
#include "quant/iq4_levels.h"
#include "simd/avx512/avx512.h"

typedef struct a16_format {
    const void *(*lines)(const uint8_t *panel, int64_t b);           /* codes of block b                              */
    __m512i (*pair)(const void *lines, int32_t p);                   /* weights 2p, 2p + 1 of 16 rows                 */
    __m512 (*scale)(const uint8_t *panel, int64_t b, int32_t half);  /* of the half of 16 weights                     */
    __m512 (*min)(const uint8_t *panel, int64_t b, int32_t half);    /* as scale; NULL: none                          */
    int32_t halves;                                                  /* scales in a block: 1 or 2                     */
    int32_t block_bytes;                                             /* of 16 rows, on average                        */
} a16_format;

/* In a register: the compiler would read it anew for each shift, and a 512-bit load is the one thing done once a cycle that a token needs many of. */
QN_INLINE __m512i qn_line16(const void *lines, int32_t i)
{
    __m512i x = _mm512_load_si512((const qn_line *)lines + i);
    __asm__("" : "+v"(x));
    return x;
}

/** Codes of pair p of a block's nibble lines. */
QN_INLINE __m512i qn_nibbles16(const void *lines, int32_t p)
{
    const __m512i line = qn_line16(lines, p / 4), shifted = p % 4 ? _mm512_srli_epi16(line, 4 * (p % 4)) : line;
    return p % 4 == 3 ? shifted : _mm512_and_si512(shifted, _mm512_set1_epi32(0x000f000f));
}

/** Bits of pair p (of `bits` a weight) of the planes that start at line i, moved to bits 4 and up. */
QN_INLINE __m512i qn_plane16(const void *lines, int32_t i, int32_t p, int32_t bits)
{
    const int32_t per_line = 16 / bits, by = p % per_line * bits - 4;
    const __m512i plane = qn_line16(lines, i + p / per_line);
    const __m512i shifted = by > 0 ? _mm512_srli_epi16(plane, by) : by < 0 ? _mm512_slli_epi16(plane, -by) : plane;
    return _mm512_and_si512(shifted, _mm512_set1_epi32(bits == 1 ? 0x00100010 : 0x00300030));
}

QN_INLINE __m512 qn_negate16(__m512 x)
{
    return _mm512_xor_ps(x, _mm512_set1_ps(-0.0f));
}

/* ---- Q4_0 ---- */

QN_INLINE const void *q4_0_lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_q4_0 *)panel)[b / 2].q[b % 2];
}

QN_INLINE __m512i q4_0_pair(const void *lines, int32_t p)
{
    return _mm512_sub_epi16(qn_nibbles16(lines, p), _mm512_set1_epi16(8));
}

QN_INLINE __m512 q4_0_scale(const uint8_t *panel, int64_t b, int32_t half)
{
    (void)half;
    return qn_load16_f16(((const qn_panel_q4_0 *)panel)[b / 2].d[b % 2]);
}

static const a16_format qn_q4_0_avx512 = { q4_0_lines, q4_0_pair, q4_0_scale, NULL, 1, sizeof(qn_panel_q4_0) / 2 };

/* ---- Q4_1 ---- */

QN_INLINE const void *q4_1_lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_q4_1 *)panel)[b].q;
}

QN_INLINE __m512 q4_1_scale(const uint8_t *panel, int64_t b, int32_t half)
{
    (void)half;
    return qn_load16_f16(((const qn_panel_q4_1 *)panel)[b].d);
}

QN_INLINE __m512 q4_1_min(const uint8_t *panel, int64_t b, int32_t half)
{
    (void)half;
    return qn_load16_f16(((const qn_panel_q4_1 *)panel)[b].m);
}

static const a16_format qn_q4_1_avx512 = { q4_1_lines, qn_nibbles16, q4_1_scale, q4_1_min, 1, sizeof(qn_panel_q4_1) };

/* ---- Q5_0: the plane holds inverted bits, so that taking it away gives the signed code ---- */

QN_INLINE const void *q5_0_lines(const uint8_t *panel, int64_t b)
{
    return &((const qn_panel_q5_0 *)panel)[b / 2].b[b % 2];
}

QN_INLINE __m512i q5_0_pair(const void *lines, int32_t p)
{
    return _mm512_sub_epi16(qn_nibbles16(lines, p), qn_plane16(lines, 4, p, 1));
}

QN_INLINE __m512 q5_0_scale(const uint8_t *panel, int64_t b, int32_t half)
{
    (void)half;
    return qn_load16_f16(((const qn_panel_q5_0 *)panel)[b / 2].d[b % 2]);
}

static const a16_format qn_q5_0_avx512 = { q5_0_lines, q5_0_pair, q5_0_scale, NULL, 1, sizeof(qn_panel_q5_0) / 2 };

/* ---- Q5_1 ---- */

QN_INLINE const void *q5_1_lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_q5_1 *)panel)[b].q;
}

QN_INLINE __m512i q5_1_pair(const void *lines, int32_t p)
{
    return _mm512_or_si512(qn_nibbles16(lines, p), qn_plane16(lines, 4, p, 1));
}

QN_INLINE __m512 q5_1_scale(const uint8_t *panel, int64_t b, int32_t half)
{
    (void)half;
    return qn_load16_f16(((const qn_panel_q5_1 *)panel)[b].d);
}

QN_INLINE __m512 q5_1_min(const uint8_t *panel, int64_t b, int32_t half)
{
    (void)half;
    return qn_load16_f16(((const qn_panel_q5_1 *)panel)[b].m);
}

static const a16_format qn_q5_1_avx512 = { q5_1_lines, q5_1_pair, q5_1_scale, q5_1_min, 1, sizeof(qn_panel_q5_1) };

/* ---- Q8_0: bytes k0 k2 k1 k3; the odd ones are pair 1 of a line, sign and all ---- */

QN_INLINE const void *q8_0_lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_q8_0 *)panel)[b / 2].q[b % 2];
}

QN_INLINE __m512i q8_0_pair(const void *lines, int32_t p)
{
    const __m512i line = qn_line16(lines, p / 2);
    return _mm512_srai_epi16(p % 2 ? line : _mm512_slli_epi16(line, 8), 8);
}

QN_INLINE __m512 q8_0_scale(const uint8_t *panel, int64_t b, int32_t half)
{
    (void)half;
    return qn_load16_f16(((const qn_panel_q8_0 *)panel)[b / 2].d[b % 2]);
}

static const a16_format qn_q8_0_avx512 = { q8_0_lines, q8_0_pair, q8_0_scale, NULL, 1, sizeof(qn_panel_q8_0) / 2 };

/* ---- Q4_K ---- */

QN_INLINE const void *q4_k_lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_q4_k *)panel)[b / 8].q[b % 8];
}

QN_INLINE __m512 q4_k_scale(const uint8_t *panel, int64_t b, int32_t half)
{
    const qn_panel_q4_k *p = (const qn_panel_q4_k *)panel + b / 8;
    (void)half;
    return _mm512_mul_ps(qn_load16_f16(p->d), qn_load16_u8(p->sc[b % 8]));
}

QN_INLINE __m512 q4_k_min(const uint8_t *panel, int64_t b, int32_t half)
{
    const qn_panel_q4_k *p = (const qn_panel_q4_k *)panel + b / 8;
    (void)half;
    return qn_negate16(_mm512_mul_ps(qn_load16_f16(p->dmin), qn_load16_u8(p->mn[b % 8])));
}

static const a16_format qn_q4_k_avx512 = { q4_k_lines, qn_nibbles16, q4_k_scale, q4_k_min, 1, sizeof(qn_panel_q4_k) / 8 };

/* ---- Q5_K ---- */

QN_INLINE const void *q5_k_lines(const uint8_t *panel, int64_t b)
{
    return &((const qn_panel_q5_k *)panel)[b / 8].b[b % 8];
}

QN_INLINE __m512 q5_k_scale(const uint8_t *panel, int64_t b, int32_t half)
{
    const qn_panel_q5_k *p = (const qn_panel_q5_k *)panel + b / 8;
    (void)half;
    return _mm512_mul_ps(qn_load16_f16(p->d), qn_load16_u8(p->sc[b % 8]));
}

QN_INLINE __m512 q5_k_min(const uint8_t *panel, int64_t b, int32_t half)
{
    const qn_panel_q5_k *p = (const qn_panel_q5_k *)panel + b / 8;
    (void)half;
    return qn_negate16(_mm512_mul_ps(qn_load16_f16(p->dmin), qn_load16_u8(p->mn[b % 8])));
}

static const a16_format qn_q5_k_avx512 = { q5_k_lines, q5_1_pair, q5_k_scale, q5_k_min, 1, sizeof(qn_panel_q5_k) / 8 };

/* ---- Q6_K: 4 lines, then two planes of 8 pairs each ---- */

QN_INLINE const void *q6_k_lines(const uint8_t *panel, int64_t b)
{
    return &((const qn_panel_q6_k *)panel)[b / 8].b[b % 8];
}

QN_INLINE __m512i q6_k_pair(const void *lines, int32_t p)
{
    const __m512i code = _mm512_or_si512(qn_nibbles16(lines, p), qn_plane16(lines, 4, p, 2));
    return _mm512_sub_epi16(code, _mm512_set1_epi16(32));
}

QN_INLINE __m512 q6_k_scale(const uint8_t *panel, int64_t b, int32_t half)
{
    const qn_panel_q6_k *p = (const qn_panel_q6_k *)panel + b / 8;
    return _mm512_mul_ps(qn_load16_f16(p->d), qn_load16_i8(p->sc[2 * (b % 8) + half]));
}

static const a16_format qn_q6_k_avx512 = { q6_k_lines, q6_k_pair, q6_k_scale, NULL, 2, sizeof(qn_panel_q6_k) / 8 };

/* ---- Q2_K ---- */

QN_INLINE const void *q2_k_lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_q2_k *)panel)[b / 8].q[b % 8];
}

QN_INLINE __m512i q2_k_pair(const void *lines, int32_t p)
{
    const __m512i shifted = _mm512_srli_epi16(qn_line16(lines, p / 8), 2 * (p % 8));
    return p % 8 == 7 ? shifted : _mm512_and_si512(shifted, _mm512_set1_epi32(0x00030003));
}

/* Scale (low nibbles) and minimum (high). */
QN_INLINE __m512i q2_k_bytes(const qn_panel_q2_k *p, int64_t b, int32_t half)
{
    return _mm512_cvtepu8_epi32(_mm_load_si128((const __m128i *)p->s[2 * (b % 8) + half]));
}

QN_INLINE __m512 q2_k_scale(const uint8_t *panel, int64_t b, int32_t half)
{
    const qn_panel_q2_k *p = (const qn_panel_q2_k *)panel + b / 8;
    const __m512i s = _mm512_and_si512(q2_k_bytes(p, b, half), _mm512_set1_epi32(15));
    return _mm512_mul_ps(qn_load16_f16(p->d), _mm512_cvtepi32_ps(s));
}

QN_INLINE __m512 q2_k_min(const uint8_t *panel, int64_t b, int32_t half)
{
    const qn_panel_q2_k *p = (const qn_panel_q2_k *)panel + b / 8;
    const __m512i m = _mm512_srli_epi32(q2_k_bytes(p, b, half), 4);
    return qn_negate16(_mm512_mul_ps(qn_load16_f16(p->dmin), _mm512_cvtepi32_ps(m)));
}

static const a16_format qn_q2_k_avx512 = { q2_k_lines, q2_k_pair, q2_k_scale, q2_k_min, 2, sizeof(qn_panel_q2_k) / 8 };

/* ---- Q3_K ---- */

QN_INLINE const void *q3_k_lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_q3_k *)panel)[b / 8].q[b % 8];
}

/* The bit that line i has left over, as bit i of pair 15. */
QN_INLINE __m512i q3_k_top(const void *lines, int32_t i)
{
    const __m512i v = _mm512_srli_epi16(qn_line16(lines, i), 15 - i);
    return i ? _mm512_and_si512(v, _mm512_set1_epi16((int16_t)(1 << i))) : v;
}

/* 5 pairs a line; 4 more than the weights. */
QN_INLINE __m512i q3_k_code(const void *lines, int32_t p)
{
    if (p == 15) return _mm512_or_si512(_mm512_or_si512(q3_k_top(lines, 0), q3_k_top(lines, 1)), q3_k_top(lines, 2));
    return _mm512_and_si512(_mm512_srli_epi16(qn_line16(lines, p / 5), 3 * (p % 5)), _mm512_set1_epi16(7));
}

QN_INLINE __m512i q3_k_pair(const void *lines, int32_t p)
{
    return _mm512_sub_epi16(q3_k_code(lines, p), _mm512_set1_epi16(4));
}

/* 6-bit scales whose low 4 bits are at `lo` of the bytes of sl and whose high 2 at `hi` of those of sh; 32 is their zero. */
QN_INLINE __m512 qn_scales6(const uint8_t *sl, int64_t lo, const uint8_t *sh, int64_t hi)
{
    const __m128i l = _mm_srl_epi16(_mm_load_si128((const __m128i *)sl), _mm_cvtsi64_si128(lo));
    const __m128i h = _mm_srl_epi16(_mm_load_si128((const __m128i *)sh), _mm_cvtsi64_si128(hi));
    const __m128i s = _mm_or_si128(_mm_and_si128(l, _mm_set1_epi8(15)), _mm_slli_epi16(_mm_and_si128(h, _mm_set1_epi8(3)), 4));
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_sub_epi8(s, _mm_set1_epi8(32))));
}

QN_INLINE __m512 q3_k_scale(const uint8_t *panel, int64_t b, int32_t half)
{
    const qn_panel_q3_k *p = (const qn_panel_q3_k *)panel + b / 8;
    return _mm512_mul_ps(qn_load16_f16(p->d), qn_scales6(p->sl[b % 8], 4 * half, p->sh[b % 8 / 2], b % 2 * 4 + 2 * half));
}

static const a16_format qn_q3_k_avx512 = { q3_k_lines, q3_k_pair, q3_k_scale, NULL, 2, sizeof(qn_panel_q3_k) / 8 };

/* ---- IQ4_NL, IQ4_XS, MXFP4: a code stands for one of 16 levels ---- */

/* Codes of a nibble line become bytes by one look-up for pairs 0 and 2, one for 1 and 3. */
QN_INLINE __m512i qn_levels16(const void *lines, int32_t p, const int8_t *level)
{
    const __m512i line = qn_line16(lines, p / 4), table = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)level));
    const __m512i code = _mm512_and_si512(p % 2 ? _mm512_srli_epi16(line, 4) : line, _mm512_set1_epi8(15));
    const __m512i bytes = _mm512_shuffle_epi8(table, code);
    return _mm512_srai_epi16(p % 4 < 2 ? _mm512_slli_epi16(bytes, 8) : bytes, 8);
}

QN_INLINE const void *iq4_nl_lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_iq4_nl *)panel)[b / 2].q[b % 2];
}

QN_INLINE __m512i iq4_pair(const void *lines, int32_t p)
{
    return qn_levels16(lines, p, qn_iq4_levels);
}

QN_INLINE __m512 iq4_nl_scale(const uint8_t *panel, int64_t b, int32_t half)
{
    (void)half;
    return qn_load16_f16(((const qn_panel_iq4_nl *)panel)[b / 2].d[b % 2]);
}

static const a16_format qn_iq4_nl_avx512 = { iq4_nl_lines, iq4_pair, iq4_nl_scale, NULL, 1, sizeof(qn_panel_iq4_nl) / 2 };

QN_INLINE const void *iq4_xs_lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_iq4_xs *)panel)[b / 8].q[b % 8];
}

QN_INLINE __m512 iq4_xs_scale(const uint8_t *panel, int64_t b, int32_t half)
{
    const qn_panel_iq4_xs *p = (const qn_panel_iq4_xs *)panel + b / 8;
    (void)half;
    return _mm512_mul_ps(qn_load16_f16(p->d), qn_scales6(p->sl[b % 8 / 2], b % 2 * 4, p->sh[b % 8 / 4], b % 4 * 2));
}

static const a16_format qn_iq4_xs_avx512 = { iq4_xs_lines, iq4_pair, iq4_xs_scale, NULL, 1, sizeof(qn_panel_iq4_xs) / 8 };

QN_INLINE const void *mxfp4_lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_mxfp4 *)panel)[b / 4].q[b % 4];
}

QN_INLINE __m512i mxfp4_pair(const void *lines, int32_t p)
{
    return qn_levels16(lines, p, qn_fp4_doubles);
}

/* The bits of 2^(e - 128): (e - 1) << 23, but (e + 1) << 21 for the subnormal e = 0 and 1, where it is the larger one. */
QN_INLINE __m512 mxfp4_scale(const uint8_t *panel, int64_t b, int32_t half)
{
    const qn_panel_mxfp4 *p = (const qn_panel_mxfp4 *)panel + b / 4;
    const __m512i e = _mm512_cvtepu8_epi32(_mm_load_si128((const __m128i *)p->e[b % 4]));
    const __m512i normal = _mm512_sub_epi32(_mm512_slli_epi32(e, 23), _mm512_set1_epi32(1 << 23));
    const __m512i subnormal = _mm512_add_epi32(_mm512_slli_epi32(e, 21), _mm512_set1_epi32(1 << 21));
    (void)half;
    return _mm512_castsi512_ps(_mm512_max_epi32(normal, subnormal));
}

static const a16_format qn_mxfp4_avx512 = { mxfp4_lines, mxfp4_pair, mxfp4_scale, NULL, 1, sizeof(qn_panel_mxfp4) / 4 };

#endif

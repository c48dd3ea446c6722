/* The quantised formats as matmul_a16_avx512.h takes them: pairs of int16 weights of 16 rows out of a block of 32, and its scales. */
#ifndef QN_SIMD_FORMATS_A16_AVX512_H
#define QN_SIMD_FORMATS_A16_AVX512_H

#include "simd/avx512/avx512.h"

typedef struct a16_format {
    const void *(*lines)(const uint8_t *panel, int64_t b);           /* codes of block b                              */
    __m512i (*pair)(const void *lines, int32_t p);                   /* weights 2p, 2p + 1 of 16 rows                 */
    __m512 (*scale)(const uint8_t *panel, int64_t b, int32_t half);  /* of the half of 16 weights                     */
    __m512 (*min)(const uint8_t *panel, int64_t b, int32_t half);    /* NULL: none                                    */
    int32_t halves;                                                  /* scales in a block: 1 or 2                     */
    int32_t block_bytes;                                             /* of 16 rows, on average                        */
} a16_format;

QN_INLINE __m512i qn_line16(const void *lines, int32_t i)
{
    return _mm512_load_si512((const qn_line *)lines + i);
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

#endif

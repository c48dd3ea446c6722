/* Products of quantised panels with A8 activations, for any level that has 512-bit registers: the level supplies the dot product. */
#ifndef QN_SIMD_MATMUL_A8_AVX512_H
#define QN_SIMD_MATMUL_A8_AVX512_H

#include "simd/avx2/pieces_a8_avx2.h"
#include "simd/avx512/formats_a8_avx512.h"
#include "simd/avx512/matmul_a16_avx512.h"

/* A piece of a panel as the inner loop wants it. */
typedef struct a8_piece {
    __m512i w[QN_A8_BLOCKS][8];
    __m512 d[QN_A8_BLOCKS][2], m[QN_A8_BLOCKS][2]; /* [block][half] */
} a8_piece;
_Static_assert(QN_A8_FITS(sizeof(a8_piece), TILE), "scratch memory");

/* Adds the product of four columns to int32 sums: unsigned weights, signed activations. NULL: there is none. */
typedef a16_dot *a8_dot;

/* Without VNNI: products of two columns are added in 16 bits as long as they fit, `chain` groups of four columns. */
QN_INLINE int32_t a8_chain(const a8_format *f)
{
    return 32767 / (254 * f->most);
}

/* Bytes of group g as the level multiplies them: dot wants them unsigned. */
QN_INLINE __m512i a8_weights(const a8_format *f, a8_dot dot, const void *lines, int32_t g)
{
    const __m512i w = f->bytes(lines, g);
    return dot && f->most > 127 ? _mm512_xor_si512(w, _mm512_set1_epi8(-128)) : w;
}

/* Products of signed weights, the activations taking the weights' signs. */
QN_INLINE __m512i a8_signed_pairs(__m512i w, __m512i q)
{
    const __m512i x = _mm512_mask_sub_epi8(q, _mm512_movepi8_mask(w), _mm512_setzero_si512(), q);
    return _mm512_maddubs_epi16(_mm512_abs_epi8(w), x);
}

/* Group g (of n from `first` on) of T tokens. pairs: 16-bit sums of a chain */
QN_INLINE void a8_group(const a8_format *f, a8_dot dot, __m512i w, const qn_rows14 *q, const int32_t g, const int32_t n, __m512i *pairs, __m512i *isum,
                        const int32_t T)
{
    const int32_t chain = a8_chain(f), at = chain ? g % chain : 0;
    QN_UNROLL
    for (int32_t t = 0; t < T; t++) {
        if (dot) {
            isum[t] = dot(isum[t], w, qn_rows14_at(q, t));
            continue;
        }
        const __m512i x = _mm512_set1_epi32(*(const qn_pair *)qn_rows14_at(q, t));
        const __m512i two = f->most > 127 ? a8_signed_pairs(w, x) : _mm512_maddubs_epi16(w, x);
        pairs[t] = at ? _mm512_add_epi16(pairs[t], two) : two;
        if (at == chain - 1 || g == n - 1) isum[t] = _mm512_add_epi32(isum[t], _mm512_madd_epi16(pairs[t], _mm512_set1_epi16(1)));
        QN_IN_ORDER16(pairs[t]);
    }
}

QN_INLINE void a8_unpack(const a8_format *f, a8_dot dot, const uint8_t *panel, int64_t b0, int64_t n, a8_piece *out)
{
    for (int64_t b = 0; b < n; b++) {
        const void *lines = f->base->lines(panel, b0 + b);
        QN_UNROLL
        for (int32_t g = 0; g < 8; g++) out->w[b][g] = a8_weights(f, dot, lines, g);
        QN_UNROLL
        for (int32_t half = 0; half < f->base->halves; half++) {
            out->d[b][half] = f->base->scale(panel, b0 + b, half);
            if (f->base->min) out->m[b][half] = f->base->min(panel, b0 + b, half);
        }
    }
}

QN_INLINE void a8_multiply(const qn_matmul_args *a, const a8_format *f, a8_dot dot, const uint8_t *panel, const a8_piece *piece, const float *head,
                           int64_t b0, int64_t n, int32_t t0, float *out, int64_t rows, const int32_t T)
{
    const int32_t halves = f->base->halves, n_groups = 8 / halves;
    const bool offset = f->offset || (dot && f->most > 127);
    qn_rows14 q = qn_rows14_open(a->act.q8 + t0 * a->act.q_stride + b0 * QN_ACT_BLOCK, a->act.q_stride);
    const float *more = head + T * QN_A8_BLOCKS;
    __m512 acc[TILE];
    QN_UNROLL
    for (int32_t t = 0; t < T; t++) acc[t] = b0 ? qn_load16(out + t * a->out_stride, rows) : _mm512_setzero_ps();
    for (int64_t b = 0; b < n; b++) {
        const void *lines = piece ? NULL : f->base->lines(panel, b0 + b);
        if (!piece && t0 == 0) prefetch_block(panel + (b0 + b) * f->base->block_bytes, f->base->block_bytes);
        QN_UNROLL
        for (int32_t half = 0; half < halves; half++) {
            __m512i isum[TILE], pairs[TILE];
            QN_UNROLL
            for (int32_t t = 0; t < T; t++)
                isum[t] = offset ? _mm512_set1_epi32(((const int32_t *)more)[t * halves * QN_A8_BLOCKS + half]) : _mm512_setzero_si512();
            QN_UNROLL
            for (int32_t g = 0; g < n_groups; g++) {
                const int32_t i = half * n_groups + g;
                a8_group(f, dot, piece ? piece->w[b][i] : a8_weights(f, dot, lines, i), &q, g, n_groups, pairs, isum, T);
                qn_rows14_step(&q, 4);
            }
            const __m512 scale = piece ? piece->d[b][half] : f->base->scale(panel, b0 + b, half);
            QN_UNROLL
            for (int32_t t = 0; t < T; t++)
                acc[t] = _mm512_fmadd_ps(_mm512_mul_ps(scale, _mm512_set1_ps(head[t * QN_A8_BLOCKS])), _mm512_cvtepi32_ps(isum[t]), acc[t]);
            if (!f->base->min) continue;
            const __m512 min = piece ? piece->m[b][half] : f->base->min(panel, b0 + b, half);
            QN_UNROLL
            for (int32_t t = 0; t < T; t++) acc[t] = _mm512_fmadd_ps(min, _mm512_set1_ps(more[t * halves * QN_A8_BLOCKS + half]), acc[t]);
        }
        head++;
        more += halves;
        QN_KEEP(head);
        QN_KEEP(more);
    }
    QN_UNROLL
    for (int32_t t = 0; t < T; t++) qn_store16(out + t * a->out_stride, rows, acc[t]);
}

/** `run8` of a row: everything but a must be a constant, and dot that of the level's functions. */
QN_INLINE void qn_matmul_a8_avx512(const qn_matmul_args *a, const qn_a8_level *level, const a8_format *f, a8_dot dot)
{
    const qn_a8_kind kind = { dot && f->most > 127 ? 128 : f->offset, f->base->halves, f->base->min != NULL };
    qn_a8_run(a, level, &kind, f);
}

/** The functions of a level with the dot product DOT, as `NAME`. */
#define QN_A8_LEVEL_AVX512(NAME, DOT, TOKENS)                                                                                                    \
    QN_INLINE void NAME##_unpack(const void *format, const uint8_t *panel, int64_t b0, int64_t n, void *piece)                                   \
    {                                                                                                                                            \
        a8_unpack(format, DOT, panel, b0, n, piece);                                                                                             \
    }                                                                                                                                            \
    QN_INLINE void NAME##_multiply(const qn_matmul_args *a, const void *format, const uint8_t *panel, const void *piece, const float *head,      \
                                   int64_t b0, int64_t n, int32_t t0, float *out, int64_t rows, const int32_t T)                                 \
    {                                                                                                                                            \
        a8_multiply(a, format, DOT, panel, piece, head, b0, n, t0, out, rows, T);                                                                \
    }                                                                                                                                            \
    static const qn_a8_level NAME = { TOKENS, 8, sizeof(a8_piece), NAME##_unpack, NAME##_multiply }

#endif

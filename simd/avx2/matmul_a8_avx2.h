/**
 * Products of quantised panels with A8 activations, for any level that has 256-bit registers: the level may supply the dot product.
 *
 * Without one, vpmaddubsw multiplies unsigned weights: sums of two products stay in 16 bits for as many groups of columns as fit (4-bit codes: a
 * whole block). Weights of 8 bits are taken as absolute values, and the activations take the signs.
 */
#ifndef QN_SIMD_MATMUL_A8_AVX2_H
#define QN_SIMD_MATMUL_A8_AVX2_H

#include "simd/avx2/formats_a8_avx2.h"
#include "simd/avx2/matmul_a16_avx2.h"
#include "simd/avx2/pieces_a8_avx2.h"

/* Adds the product of four columns to int32 sums: unsigned weights, signed activations. NULL: there is none. */
typedef a16_dot *a8_dot;

/* Groups of four columns whose products fit into 16 bits together. */
QN_INLINE int32_t a8_chain(const a8_format *f)
{
    return 32767 / (254 * f->most);
}

/* Bytes of group g as the level multiplies them: dot wants them unsigned. */
QN_INLINE __m256i a8_weights(const a8_format *f, a8_dot dot, const void *lines, int32_t h, int32_t g)
{
    const __m256i w = f->bytes(lines, h, g);
    return dot && f->most > 127 ? _mm256_xor_si256(w, _mm256_set1_epi8(-128)) : w;
}

enum { A8_TILE = 4 };

/* A piece of a panel as the inner loop wants it. */
typedef struct a8_piece {
    __m256i w[QN_A8_BLOCKS][8][2];                       /* [block][group][rows 0-7, 8-15] */
    __m256 d[QN_A8_BLOCKS][2][2], m[QN_A8_BLOCKS][2][2]; /* [block][half][rows]            */
} a8_piece;
_Static_assert(QN_A8_FITS(sizeof(a8_piece), A8_TILE), "scratch memory");

QN_INLINE void a8_unpack(const a8_format *f, a8_dot dot, const uint8_t *panel, int64_t b0, int64_t n, a8_piece *out)
{
    for (int64_t b = 0; b < n; b++) {
        const void *lines = f->base->lines(panel, b0 + b);
        QN_UNROLL
        for (int32_t i = 0; i < 16; i++) out->w[b][i / 2][i % 2] = a8_weights(f, dot, lines, i % 2, i / 2);
        QN_UNROLL
        for (int32_t i = 0; i < 2 * f->base->halves; i++) {
            out->d[b][i / 2][i % 2] = f->base->scale(panel, b0 + b, i % 2, i / 2);
            if (f->base->min) out->m[b][i / 2][i % 2] = f->base->min(panel, b0 + b, i % 2, i / 2);
        }
    }
}

/* Group g of n: columns 4g .. of T tokens. pairs: 16-bit sums of a chain */
QN_INLINE void a8_group(const a8_format *f, a8_dot dot, const __m256i *w, const int8_t *const *q, const int32_t at, const int32_t g, const int32_t n,
                        __m256i *pairs, __m256i *isum, const int32_t T)
{
    const int32_t chain = a8_chain(f);
    const __m256i u[2] = { f->most > 127 ? _mm256_abs_epi8(w[0]) : w[0], f->most > 127 ? _mm256_abs_epi8(w[1]) : w[1] };
    QN_UNROLL
    for (int32_t i = 0; i < 2 * T; i++) {
        const __m256i x = qn_bcast_pair((const int16_t *)(const void *)(q[i / 2] + at));
        if (dot) {
            isum[i] = dot(isum[i], w[i % 2], x);
            QN_IN_ORDER(isum[i]);
            continue;
        }
        const __m256i two = _mm256_maddubs_epi16(u[i % 2], f->most > 127 ? _mm256_sign_epi8(x, w[i % 2]) : x);
        pairs[i] = g % chain ? _mm256_add_epi16(pairs[i], two) : two;
        if (g % chain == chain - 1 || g == n - 1) {
            const __m256i four = _mm256_madd_epi16(pairs[i], _mm256_set1_epi16(1));
            isum[i] = _mm256_add_epi32(isum[i], four);
            QN_IN_ORDER(isum[i]);
        } else {
            QN_IN_ORDER(pairs[i]);
        }
    }
}

/* Scales and minimums of one half of a block: T tokens. */
QN_INLINE void a8_add(const __m256 *scale, const __m256 *min, const float *d, const float *s, const int32_t s_stride, const __m256i *isum, __m256 *acc,
                      const int32_t T)
{
    QN_UNROLL
    for (int32_t i = 0; i < 2 * T; i++) {
        const __m256 x = _mm256_broadcast_ss(d + i / 2 * QN_A8_BLOCKS);
        const __m256 y = _mm256_fmadd_ps(_mm256_mul_ps(scale[i % 2], x), _mm256_cvtepi32_ps(isum[i]), acc[i]);
        acc[i] = min ? _mm256_fmadd_ps(min[i % 2], _mm256_broadcast_ss(s + i / 2 * s_stride), y) : y;
    }
}

/* The float sums of several tokens live in memory: the registers are for the integer sums. */
QN_INLINE void a8_multiply(const qn_matmul_args *a, const a8_format *f, a8_dot dot, const uint8_t *panel, const a8_piece *piece, const float *head,
                           int64_t b0, int64_t n, int32_t t0, float *out, int64_t rows, const int32_t T)
{
    const int32_t halves = f->base->halves, n_groups = 8 / halves;
    const bool offset = f->offset || (dot && f->most > 127);
    const float *more = head + T * QN_A8_BLOCKS;
    const int8_t *q[A8_TILE];
    __m256 sums[2 * A8_TILE], *acc = sums;
    if (T > 2) QN_KEEP(acc);
    QN_UNROLL
    for (int32_t t = 0; t < T; t++) {
        q[t] = a->act.q8 + (t0 + t) * a->act.q_stride + b0 * QN_ACT_BLOCK;
        acc[2 * t] = b0 ? qn_load8(out + t * a->out_stride, rows) : _mm256_setzero_ps();
        acc[2 * t + 1] = b0 && rows > 8 ? qn_load8(out + t * a->out_stride + 8, rows - 8) : _mm256_setzero_ps();
    }
    for (int64_t b = 0; b < n; b++) {
        const void *lines = piece ? NULL : f->base->lines(panel, b0 + b);
        if (!piece && t0 == 0) prefetch_block(panel + (b0 + b) * f->base->block_bytes, f->base->block_bytes);
        QN_UNROLL
        for (int32_t half = 0; half < halves; half++) {
            __m256i isum[2 * A8_TILE], pairs[2 * A8_TILE];
            QN_UNROLL
            for (int32_t i = 0; i < 2 * T; i++)
                isum[i] = offset ? _mm256_set1_epi32(((const int32_t *)more)[i / 2 * halves * QN_A8_BLOCKS + half]) : _mm256_setzero_si256();
            QN_UNROLL
            for (int32_t g = 0; g < n_groups; g++) {
                const int32_t i = half * n_groups + g;
                const __m256i w[2] = { piece ? piece->w[b][i][0] : a8_weights(f, dot, lines, 0, i),
                                       piece ? piece->w[b][i][1] : a8_weights(f, dot, lines, 1, i) };
                a8_group(f, dot, w, q, 4 * i, g, n_groups, pairs, isum, T);
            }
            __m256 scale[2], min[2];
            QN_UNROLL
            for (int32_t h = 0; h < 2; h++) {
                scale[h] = piece ? piece->d[b][half][h] : f->base->scale(panel, b0 + b, h, half);
                if (f->base->min) min[h] = piece ? piece->m[b][half][h] : f->base->min(panel, b0 + b, h, half);
            }
            a8_add(scale, f->base->min ? min : NULL, head, more + half, halves * QN_A8_BLOCKS, isum, acc, T);
        }
        head++;
        more += halves;
        QN_KEEP(head);
        QN_KEEP(more);
        QN_UNROLL
        for (int32_t t = 0; t < T; t++) {
            q[t] += QN_ACT_BLOCK;
            QN_KEEP(q[t]);
        }
    }
    QN_UNROLL
    for (int32_t t = 0; t < T; t++) {
        qn_store8(out + t * a->out_stride, rows, acc[2 * t]);
        if (rows > 8) qn_store8(out + t * a->out_stride + 8, rows - 8, acc[2 * t + 1]);
    }
}

/** The functions of a level with the dot product DOT, as `NAME`. */
#define QN_A8_LEVEL_AVX2(NAME, DOT)                                                                                                              \
    QN_INLINE void NAME##_unpack(const void *format, const uint8_t *panel, int64_t b0, int64_t n, void *piece)                                   \
    {                                                                                                                                            \
        a8_unpack(format, DOT, panel, b0, n, piece);                                                                                             \
    }                                                                                                                                            \
    QN_INLINE void NAME##_multiply(const qn_matmul_args *a, const void *format, const uint8_t *panel, const void *piece, const float *head,      \
                                   int64_t b0, int64_t n, int32_t t0, float *out, int64_t rows, const int32_t T)                                 \
    {                                                                                                                                            \
        a8_multiply(a, format, DOT, panel, piece, head, b0, n, t0, out, rows, T);                                                                \
    }                                                                                                                                            \
    static const qn_a8_level NAME = { A8_TILE, A8_TILE, sizeof(a8_piece), NAME##_unpack, NAME##_multiply }

/** `run8` of a row: everything but a must be a constant, and dot that of the level's functions. */
QN_INLINE void qn_matmul_a8_level_avx2(const qn_matmul_args *a, const qn_a8_level *level, const a8_format *f, a8_dot dot)
{
    const qn_a8_kind kind = { dot && f->most > 127 ? 128 : f->offset, f->base->halves, f->base->min != NULL };
    qn_a8_run(a, level, &kind, f);
}

QN_A8_LEVEL_AVX2(qn_a8_avx2, NULL);

QN_INLINE void qn_matmul_a8_avx2(const qn_matmul_args *a, const a8_format *f)
{
    qn_matmul_a8_level_avx2(a, &qn_a8_avx2, f, NULL);
}

#endif

/**
 * Products of quantised panels with A8 activations, for any level that has 512-bit registers: the level supplies the dot product.
 *
 * Both ways go through a row in pieces of up to 16 blocks, the sums of a tile waiting in `out` between them. Few tokens take the bytes of weights
 * straight from a panel (direct); many unpack the piece of several panels into the scratch memory once (unpacked). Either way the piece has a
 * head for the tile at hand: the tokens' scales, and their sums or what the format's offset makes too much.
 */
#ifndef QN_SIMD_MATMUL_A8_AVX512_H
#define QN_SIMD_MATMUL_A8_AVX512_H

#include "simd/avx2/sums_a8_avx2.h"
#include "simd/avx512/formats_a8_avx512.h"
#include "simd/avx512/matmul_a16_avx512.h"

enum {
    A8_DIRECT = 8, /* tokens up to which unpacking does not pay                              */
    A8_BLOCKS = 16, /* of a piece: 512 columns, 8 KiB of bytes                                */
    A8_PANELS = 4, /* unpacked together: they share heads, and the activations in L1         */
};

/* A piece of a panel as the inner loop wants it. */
typedef struct a8_piece {
    __m512i w[A8_BLOCKS][8];
    __m512 d[A8_BLOCKS][2], m[A8_BLOCKS][2]; /* [block][half] */
} a8_piece;

/* Head of T tokens: d[T][A8_BLOCKS], then int32 sums or float32 s [T][A8_BLOCKS][halves]. */
QN_INLINE int64_t a8_head_floats(const a8_format *f, int64_t n_tokens)
{
    return n_tokens * A8_BLOCKS * (1 + f->base->halves);
}

/* Sums of 16 blocks or halves of n blocks from block b. */
QN_INLINE __m512i a8_sums(const int8_t *q, int64_t b, int64_t n, const int32_t halves)
{
    __m512i s;
    if (halves == 2)
        return _mm512_inserti64x4(_mm512_castsi256_si512(qn_sums_of_8_halves(q, b, n)), qn_sums_of_8_halves(q, b + 4, n), 1);
    s = _mm512_castsi128_si512(qn_sums_of_4_blocks(q, b, n));
    s = _mm512_inserti32x4(s, qn_sums_of_4_blocks(q, b + 4, n), 1);
    s = _mm512_inserti32x4(s, qn_sums_of_4_blocks(q, b + 8, n), 2);
    return _mm512_inserti32x4(s, qn_sums_of_4_blocks(q, b + 12, n), 3);
}

/* Blocks b0 .. b0 + n of n_tokens tokens from t0. */
QN_INLINE void a8_head_make(const qn_matmul_args *a, const a8_format *f, int32_t t0, const int32_t n_tokens, int64_t b0, int64_t n, float *head)
{
    const int64_t d_stride = a->act.q_stride / QN_ACT_BLOCK;
    const int32_t halves = f->base->halves;
    float *more = head + n_tokens * A8_BLOCKS;
    for (int32_t t = 0; t < n_tokens; t++) {
        const int64_t at = (t0 + t) * d_stride + b0;
        const int8_t *q = a->act.q8 + (t0 + t) * a->act.q_stride + b0 * QN_ACT_BLOCK;
        const __m512 d = _mm512_maskz_loadu_ps(qn_mask16(n), a->act.d + at);
        _mm512_store_ps(head + t * A8_BLOCKS, d);
        for (int32_t i = 0; i < halves; i++) {
            float *to = more + (t * halves + i) * A8_BLOCKS;
            if (f->offset) {
                const __m512i s = a8_sums(q, A8_BLOCKS / 2 * i, n, halves);
                _mm512_store_si512(to, _mm512_mullo_epi32(s, _mm512_set1_epi32(-f->offset)));
            } else if (f->base->min && halves == 2) {
                const __m512i twice = _mm512_add_epi32(_mm512_set1_epi32(A8_BLOCKS / 2 * i),
                                                       _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7));
                const __m512 s = _mm512_cvtepi32_ps(a8_sums(q, A8_BLOCKS / 2 * i, n, 2));
                _mm512_store_ps(to, _mm512_mul_ps(_mm512_permutexvar_ps(twice, d), s));
            } else if (f->base->min) {
                _mm512_store_ps(to, _mm512_maskz_loadu_ps(qn_mask16(n), a->act.s + at));
            }
        }
    }
}

QN_INLINE void a8_piece_unpack(const a8_format *f, const uint8_t *panel, int64_t b0, int64_t n, a8_piece *out)
{
    for (int64_t b = 0; b < n; b++) {
        const void *lines = f->base->lines(panel, b0 + b);
        QN_UNROLL
        for (int32_t g = 0; g < 8; g++) out->w[b][g] = f->bytes(lines, g);
        QN_UNROLL
        for (int32_t half = 0; half < f->base->halves; half++) out->d[b][half] = f->base->scale(panel, b0 + b, half);
        if (f->base->min)
            QN_UNROLL
            for (int32_t half = 0; half < f->base->halves; half++) out->m[b][half] = f->base->min(panel, b0 + b, half);
    }
}

/* T tokens from token t0 and the blocks b0 .. b0 + n of one panel, or of its unpacked piece where there is one. */
QN_INLINE void a8_tile(const qn_matmul_args *a, const a8_format *f, a16_dot dot, const uint8_t *panel, const a8_piece *piece, const float *head,
                       int64_t b0, int64_t n, int32_t t0, float *out, int64_t rows, const int32_t T)
{
    const int32_t halves = f->base->halves, n_groups = 8 / halves;
    qn_rows14 q = qn_rows14_open(a->act.q8 + t0 * a->act.q_stride + b0 * QN_ACT_BLOCK, a->act.q_stride);
    const float *more = head + T * A8_BLOCKS;
    __m512 acc[TILE];
    QN_UNROLL
    for (int32_t t = 0; t < T; t++) acc[t] = b0 ? qn_load16(out + t * a->out_stride, rows) : _mm512_setzero_ps();
    for (int64_t b = 0; b < n; b++) {
        const void *lines = f->base->lines(panel, b0 + b);
        if (!piece && t0 == 0) prefetch_block(panel + (b0 + b) * f->base->block_bytes, f->base->block_bytes);
        QN_UNROLL
        for (int32_t half = 0; half < halves; half++) {
            __m512i isum[TILE];
            QN_UNROLL
            for (int32_t t = 0; t < T; t++)
                isum[t] = f->offset ? _mm512_set1_epi32(((const int32_t *)more)[t * halves * A8_BLOCKS + half]) : _mm512_setzero_si512();
            QN_UNROLL
            for (int32_t g = half * n_groups; g < (half + 1) * n_groups; g++) {
                const __m512i w = piece ? piece->w[b][g] : f->bytes(lines, g);
                QN_UNROLL
                for (int32_t t = 0; t < T; t++) isum[t] = dot(isum[t], w, qn_rows14_at(&q, t));
                qn_rows14_step(&q, 4);
            }
            const __m512 scale = piece ? piece->d[b][half] : f->base->scale(panel, b0 + b, half);
            QN_UNROLL
            for (int32_t t = 0; t < T; t++)
                acc[t] = _mm512_fmadd_ps(_mm512_mul_ps(scale, _mm512_set1_ps(head[t * A8_BLOCKS])), _mm512_cvtepi32_ps(isum[t]), acc[t]);
            if (!f->base->min) continue;
            const __m512 min = piece ? piece->m[b][half] : f->base->min(panel, b0 + b, half);
            QN_UNROLL
            for (int32_t t = 0; t < T; t++) acc[t] = _mm512_fmadd_ps(min, _mm512_set1_ps(more[t * halves * A8_BLOCKS + half]), acc[t]);
        }
        head++;
        more += halves;
        QN_KEEP(head);
        QN_KEEP(more);
    }
    QN_UNROLL
    for (int32_t t = 0; t < T; t++) qn_store16(out + t * a->out_stride, rows, acc[t]);
}

/* Tokens of the next tile. */
QN_INLINE int32_t a8_tile_tokens(int32_t left)
{
    return left >= TILE ? TILE : left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

QN_INLINE void a8_tile_any(const qn_matmul_args *a, const a8_format *f, a16_dot dot, const uint8_t *panel, const a8_piece *piece, const float *head,
                           int64_t b0, int64_t n, int32_t t, float *out, int64_t rows, int32_t n_tokens)
{
    out += t * a->out_stride;
    switch (n_tokens) {
    case 1: a8_tile(a, f, dot, panel, piece, head, b0, n, t, out, rows, 1); break;
    case 2: a8_tile(a, f, dot, panel, piece, head, b0, n, t, out, rows, 2); break;
    case 4: a8_tile(a, f, dot, panel, piece, head, b0, n, t, out, rows, 4); break;
    case 8: a8_tile(a, f, dot, panel, piece, head, b0, n, t, out, rows, 8); break;
    default:
        if (piece) a8_tile(a, f, dot, panel, piece, head, b0, n, t, out, rows, TILE);
    }
}

/* Blocks of a piece: pieces of one length, 9 + 9 and not 16 + 2. */
QN_INLINE int64_t a8_step(int64_t n_blocks)
{
    const int64_t n_pieces = (n_blocks + A8_BLOCKS - 1) / A8_BLOCKS;
    return (n_blocks + n_pieces - 1) / n_pieces;
}

QN_INLINE void a8_direct(const qn_matmul_args *a, const a8_format *f, a16_dot dot, float *heads)
{
    const int64_t n_blocks = a->n_cols / QN_ACT_BLOCK, step = a8_step(n_blocks);
    float *head = heads;
    for (int32_t t = 0, T; t < a->n_tokens; t += T) {
        T = a8_tile_tokens(a->n_tokens - t);
        for (int64_t b0 = 0; b0 < n_blocks; b0 += step, head += a8_head_floats(f, T))
            a8_head_make(a, f, t, T, b0, n_blocks - b0 < step ? n_blocks - b0 : step, head);
    }
    for (int64_t i = 0; i < a->n_panels; i++) {
        const uint8_t *panel = a->w + (size_t)i * a->panel_bytes;
        head = heads;
        for (int32_t t = 0, T; t < a->n_tokens; t += T) {
            T = a8_tile_tokens(a->n_tokens - t);
            for (int64_t b0 = 0; b0 < n_blocks; b0 += step, head += a8_head_floats(f, T))
                a8_tile_any(a, f, dot, panel, NULL, head, b0, n_blocks - b0 < step ? n_blocks - b0 : step, t, a->out + QN_PANEL * i,
                            a->n_rows - QN_PANEL * i, T);
        }
    }
}

QN_INLINE void a8_unpacked(const qn_matmul_args *a, const a8_format *f, a16_dot dot, float *scratch)
{
    const int64_t n_blocks = a->n_cols / QN_ACT_BLOCK, step = a8_step(n_blocks);
    a8_piece *piece = (a8_piece *)scratch;
    float *head = (float *)(piece + A8_PANELS);
    for (int64_t i0 = 0; i0 < a->n_panels; i0 += A8_PANELS) {
        const int64_t n_panels = a->n_panels - i0 < A8_PANELS ? a->n_panels - i0 : A8_PANELS;
        for (int64_t b0 = 0; b0 < n_blocks; b0 += step) {
            const int64_t n = n_blocks - b0 < step ? n_blocks - b0 : step;
            for (int64_t i = 0; i < n_panels; i++) a8_piece_unpack(f, a->w + (size_t)(i0 + i) * a->panel_bytes, b0, n, piece + i);
            for (int32_t t = 0, T; t < a->n_tokens; t += T) {
                T = a8_tile_tokens(a->n_tokens - t);
                a8_head_make(a, f, t, T, b0, n, head);
                for (int64_t i = 0; i < n_panels; i++) {
                    const int64_t row = QN_PANEL * (i0 + i);
                    a8_tile_any(a, f, dot, a->w, piece + i, head, b0, n, t, a->out + row, a->n_rows - row, T);
                }
            }
        }
    }
}
_Static_assert(A8_PANELS * sizeof(a8_piece) + TILE * A8_BLOCKS * 3 * sizeof(float) + 64 <= QN_MATMUL_SCRATCH * sizeof(float), "pieces and a head fit");

/** `run8` of a row: f and dot must be constants. */
QN_INLINE void qn_matmul_a8_avx512(const qn_matmul_args *a, const a8_format *f, a16_dot dot)
{
    float *scratch = (float *)(((uintptr_t)a->scratch + 63) / 64 * 64);
    const int64_t n_heads = (a->n_cols / QN_ACT_BLOCK + A8_BLOCKS - 1) / A8_BLOCKS;
    if (a->n_tokens <= A8_DIRECT && n_heads * a8_head_floats(f, a->n_tokens) <= QN_MATMUL_SCRATCH - 16) a8_direct(a, f, dot, scratch);
    else a8_unpacked(a, f, dot, scratch);
}

#endif

/**
 * How a product with A8 activations goes through rows and tokens, for every level from AVX2 on.
 *
 * A row is taken in pieces of up to 16 blocks; the sums of a tile of tokens wait in `out` between two pieces. Few tokens take the bytes of weights
 * straight from a panel (direct); many unpack the piece of several panels into the scratch memory once (unpacked). Either way the piece has a
 * head for the tile at hand: the tokens' scales, and their sums or what the format's offset makes too much.
 */
#ifndef QN_SIMD_PIECES_A8_AVX2_H
#define QN_SIMD_PIECES_A8_AVX2_H

#include <string.h>

#include "simd/avx2/avx2.h"

enum {
    QN_A8_BLOCKS = 16, /* of a piece: 512 columns, 8 KiB of bytes                        */
    QN_A8_PANELS = 4   /* unpacked together: they share heads, and the activations in L1 */
};

/** What a format asks of the head of a piece. */
typedef struct qn_a8_kind {
    int32_t offset; /* byte - offset is the weight                                     */
    int32_t halves; /* scales in a block: 1 or 2                                       */
    bool min;       /* minimums, which meet d * sum(q); not beside an offset           */
} qn_a8_kind;

typedef struct qn_a8_level {
    int32_t tile;       /* tokens at a time, at most: 4, or 8 and more                     */
    int32_t direct;     /* tokens up to which unpacking does not pay                       */
    size_t piece_bytes; /* of a panel's piece, unpacked; a multiple of 64                  */
    void (*unpack)(const void *format, const uint8_t *panel, int64_t b0, int64_t n, void *piece);
    /** T tokens from token t0 times the blocks b0 .. b0 + n of one panel, or of its unpacked piece where there is one; added to `out` where b0 > 0. */
    void (*multiply)(const qn_matmul_args *a, const void *format, const uint8_t *panel, const void *piece, const float *head, int64_t b0, int64_t n,
                     int32_t t0, float *out, int64_t rows, const int32_t T);
} qn_a8_level;

/* ---- heads ---- */

/** Head of tokens: d[n_tokens][QN_A8_BLOCKS], then int32 sums or float32 s [n_tokens][QN_A8_BLOCKS][halves]. */
QN_INLINE int64_t qn_a8_head_floats(const qn_a8_kind *kind, int64_t n_tokens)
{
    return n_tokens * QN_A8_BLOCKS * (1 + kind->halves);
}

/* 8 sums of 4 columns each: the first 4 belong to the first half of the block. */
QN_INLINE __m256i sums_of_4(const int8_t *q)
{
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), _mm256_loadu_si256((const __m256i *)q));
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

/* Sums of the halves of the blocks b .. b + 3 of n, [block][half]; past n, of the last block. */
QN_INLINE __m256i sums_of_8_halves_a8(const int8_t *q, int64_t b, int64_t n)
{
    __m256i s[4];
    QN_UNROLL
    for (int32_t i = 0; i < 4; i++) s[i] = sums_of_4(q + QN_ACT_BLOCK * (b + i < n ? b + i : n - 1));
    s[0] = _mm256_hadd_epi32(_mm256_hadd_epi32(s[0], s[1]), _mm256_hadd_epi32(s[2], s[3])); /* first halves, then second ones */
    return _mm256_permutevar8x32_epi32(s[0], _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* offset * sum(q) of each scale's part of n blocks, taken away. */
QN_INLINE void offsets_put(const qn_a8_kind *kind, const int8_t *q, int64_t n, int32_t *out)
{
    const __m256i c = _mm256_set1_epi32(-kind->offset);
    for (int64_t b = 0; b < n; b += 4) {
        const __m256i s = _mm256_mullo_epi32(sums_of_8_halves_a8(q, b, n), c);
        if (kind->halves == 2) _mm256_store_si256((__m256i *)(out + 2 * b), s);
        else _mm_store_si128((__m128i *)(out + b), _mm_hadd_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1)));
    }
}

/* d * sum(q) of the halves of n blocks. d: readable up to QN_A8_BLOCKS */
QN_INLINE void half_sums_put(const float *d, const int8_t *q, int64_t n, float *out)
{
    for (int64_t b = 0; b < n; b += 4) {
        const __m128 d4 = _mm_load_ps(d + b);
        const __m256 d8 = _mm256_set_m128(_mm_unpackhi_ps(d4, d4), _mm_unpacklo_ps(d4, d4));
        _mm256_store_ps(out + 2 * b, _mm256_mul_ps(d8, _mm256_cvtepi32_ps(sums_of_8_halves_a8(q, b, n))));
    }
}

/* n (at most 16) floats: two eights that overlap. */
QN_INLINE void floats_copy(const float *from, int64_t n, float *to)
{
    if (n < 8) {
        memcpy(to, from, (size_t)n * sizeof *to);
        return;
    }
    const __m256 head = _mm256_loadu_ps(from), tail = _mm256_loadu_ps(from + n - 8);
    _mm256_storeu_ps(to, head);
    _mm256_storeu_ps(to + n - 8, tail);
}

/* Blocks b0 .. b0 + n of n_tokens tokens from t0. */
QN_INLINE void a8_head_make(const qn_matmul_args *a, const qn_a8_kind *kind, int32_t t0, int32_t n_tokens, int64_t b0, int64_t n, float *head)
{
    float *more = head + n_tokens * QN_A8_BLOCKS;
    for (int32_t t = 0; t < n_tokens; t++, head += QN_A8_BLOCKS, more += QN_A8_BLOCKS * kind->halves) {
        const int64_t at = (t0 + t) * a->act.q_stride + b0 * QN_ACT_BLOCK;
        floats_copy(a->act.d + at / QN_ACT_BLOCK, n, head);
        if (kind->offset) offsets_put(kind, a->act.q8 + at, n, (int32_t *)more);
        else if (kind->min && kind->halves == 2) half_sums_put(head, a->act.q8 + at, n, more);
        else if (kind->min) floats_copy(a->act.s + at / QN_ACT_BLOCK, n, more);
    }
}

/* ---- rows and tokens ---- */

/* Tokens of the next tile. */
QN_INLINE int32_t a8_tile_tokens(const qn_a8_level *level, int32_t left)
{
    return left >= level->tile ? level->tile : left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

QN_INLINE void a8_tile(const qn_matmul_args *a, const qn_a8_level *level, const void *format, const uint8_t *panel, const void *piece,
                       const float *head, int64_t b0, int64_t n, int32_t t, int64_t row, int32_t n_tokens)
{
    float *out = a->out + t * a->out_stride + row;
    const int64_t rows = a->n_rows - row;
    switch (n_tokens) {
    case 1: level->multiply(a, format, panel, piece, head, b0, n, t, out, rows, 1); break;
    case 2: level->multiply(a, format, panel, piece, head, b0, n, t, out, rows, 2); break;
    case 4: level->multiply(a, format, panel, piece, head, b0, n, t, out, rows, 4); break;
    case 8:
        if (level->tile >= 8) level->multiply(a, format, panel, piece, head, b0, n, t, out, rows, 8);
        break;
    default:
        if (piece && level->tile > 8) level->multiply(a, format, panel, piece, head, b0, n, t, out, rows, level->tile);
    }
}

/* Blocks of a piece: pieces of one length, 9 + 9 and not 16 + 2. */
QN_INLINE int64_t a8_step(int64_t n_blocks)
{
    const int64_t n_pieces = (n_blocks + QN_A8_BLOCKS - 1) / QN_A8_BLOCKS;
    return (n_blocks + n_pieces - 1) / n_pieces;
}

QN_INLINE void a8_direct(const qn_matmul_args *a, const qn_a8_level *level, const qn_a8_kind *kind, const void *format, float *heads)
{
    const int64_t n_blocks = a->n_cols / QN_ACT_BLOCK, step = a8_step(n_blocks);
    float *head = heads;
    for (int32_t t = 0, T; t < a->n_tokens; t += T) {
        T = a8_tile_tokens(level, a->n_tokens - t);
        for (int64_t b0 = 0; b0 < n_blocks; b0 += step, head += qn_a8_head_floats(kind, T))
            a8_head_make(a, kind, t, T, b0, n_blocks - b0 < step ? n_blocks - b0 : step, head);
    }
    for (int64_t i = 0; i < a->n_panels; i++) {
        const uint8_t *panel = a->w + (size_t)i * a->panel_bytes;
        head = heads;
        for (int32_t t = 0, T; t < a->n_tokens; t += T) {
            T = a8_tile_tokens(level, a->n_tokens - t);
            for (int64_t b0 = 0; b0 < n_blocks; b0 += step, head += qn_a8_head_floats(kind, T))
                a8_tile(a, level, format, panel, NULL, head, b0, n_blocks - b0 < step ? n_blocks - b0 : step, t, QN_PANEL * i, T);
        }
    }
}

QN_INLINE void a8_unpacked(const qn_matmul_args *a, const qn_a8_level *level, const qn_a8_kind *kind, const void *format, uint8_t *pieces)
{
    const int64_t n_blocks = a->n_cols / QN_ACT_BLOCK, step = a8_step(n_blocks);
    float *head = (float *)(void *)(pieces + QN_A8_PANELS * level->piece_bytes);
    for (int64_t i0 = 0; i0 < a->n_panels; i0 += QN_A8_PANELS) {
        const int64_t n_panels = a->n_panels - i0 < QN_A8_PANELS ? a->n_panels - i0 : QN_A8_PANELS;
        for (int64_t b0 = 0; b0 < n_blocks; b0 += step) {
            const int64_t n = n_blocks - b0 < step ? n_blocks - b0 : step;
            for (int64_t i = 0; i < n_panels; i++)
                level->unpack(format, a->w + (size_t)(i0 + i) * a->panel_bytes, b0, n, pieces + (size_t)i * level->piece_bytes);
            for (int32_t t = 0, T; t < a->n_tokens; t += T) {
                T = a8_tile_tokens(level, a->n_tokens - t);
                a8_head_make(a, kind, t, T, b0, n, head);
                for (int64_t i = 0; i < n_panels; i++)
                    a8_tile(a, level, format, NULL, pieces + (size_t)i * level->piece_bytes, head, b0, n, t, QN_PANEL * (i0 + i), T);
            }
        }
    }
}

/* Pieces and the largest head fit the scratch memory. */
#define QN_A8_FITS(piece_bytes, tile) (QN_A8_PANELS * (piece_bytes) + (tile) * QN_A8_BLOCKS * 3 * 4 + 64 <= QN_MATMUL_SCRATCH * sizeof(float))

/** `run8` of a row: level, kind and format must be constants. */
QN_INLINE void qn_a8_run(const qn_matmul_args *a, const qn_a8_level *level, const qn_a8_kind *kind, const void *format)
{
    uint8_t *scratch = (uint8_t *)(((uintptr_t)a->scratch + 63) / 64 * 64);
    const int64_t n_heads = (a->n_cols / QN_ACT_BLOCK + QN_A8_BLOCKS - 1) / QN_A8_BLOCKS;
    if (a->n_tokens <= level->direct && n_heads * qn_a8_head_floats(kind, a->n_tokens) <= QN_MATMUL_SCRATCH - 16)
        a8_direct(a, level, kind, format, (float *)(void *)scratch);
    else a8_unpacked(a, level, kind, format, scratch);
}

#endif

/**
 * Products of quantised panels with A16 activations, for any level that has 256-bit registers: the level supplies the dot product.
 *
 * The format and the dot product are constants, so that every function below is compiled for them. Few tokens take the pairs straight from the
 * panel (direct); many unpack a piece of the panel to int16 once, into the L1 cache (unpacked). Either way 4 tokens share a weight, and both give
 * the same bits.
 */
#ifndef QN_SIMD_MATMUL_A16_AVX2_H
#define QN_SIMD_MATMUL_A16_AVX2_H

#include "simd/avx2/formats_a16_avx2.h"

enum {
    TILE = 4,             /* tokens at a time: 8 integer sums; 6 of them with 12 sums were slower by 2 %      */
    PIECE_BLOCKS = 16,    /* blocks of a piece: 512 columns, 16 KiB of int16, half of the L1 cache            */
    PREFETCH_BYTES = 2560 /* ahead of the panel being read: the hardware's own prefetch stops at page borders */
};

/* Adds the product of two columns to int32 sums. */
typedef __m256i a16_dot(__m256i acc, __m256i w, __m256i q);

/* Without VNNI: a product more. */
QN_INLINE __m256i qn_dot_avx2(__m256i acc, __m256i w, __m256i q)
{
    return _mm256_add_epi32(acc, _mm256_madd_epi16(w, q));
}

QN_INLINE __m256i qn_bcast_pair(const int16_t *q)
{
    int32_t two;
    __builtin_memcpy(&two, q, 4);
    return _mm256_set1_epi32(two);
}

/* c * sum of 16 activations. */
QN_INLINE int32_t sum_of_half(const int16_t *q, __m256i c)
{
    const __m256i s = _mm256_madd_epi16(_mm256_loadu_si256((const __m256i *)q), c);
    __m128i v = _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
    v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0x4e));
    v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0xb1));
    return _mm_cvtsi128_si32(v);
}

/* offset * sum(q) of each scale's part of each block: what the codes give too much. */
QN_INLINE void offset_sums(const qn_matmul_args *a, const a16_format *f, int32_t *out)
{
    const int64_t n = a->n_cols / 16;
    const __m256i c = _mm256_set1_epi16((int16_t)-f->offset);
    for (int32_t t = 0; t < a->n_tokens; t++) {
        for (int64_t i = 0; i < n; i++) {
            const int32_t sum = sum_of_half(a->act.q + t * a->act.q_stride + 16 * i, c);
            int32_t *slot = out + (t * n + i) * f->halves / 2;
            *slot = f->halves == 2 || i % 2 == 0 ? sum : *slot + sum;
        }
    }
}

/* Sums of 16 activations each, of 8 neighbours. */
QN_INLINE __m256i sums_of_8_halves(const int16_t *q)
{
    const __m256i one = _mm256_set1_epi16(1);
    __m256i s[8];
    QN_UNROLL
    for (int32_t i = 0; i < 8; i++) s[i] = _mm256_madd_epi16(_mm256_loadu_si256((const __m256i *)(q + 16 * i)), one);
    QN_UNROLL
    for (int32_t i = 0; i < 4; i++) s[i] = _mm256_hadd_epi32(s[2 * i], s[2 * i + 1]);
    const __m256i a = _mm256_hadd_epi32(s[0], s[1]), b = _mm256_hadd_epi32(s[2], s[3]);
    return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}

/* d * sum(q) of the halves of n blocks: [block][2]. */
QN_INLINE void half_sums(const int16_t *q, const float *d, int64_t n, float *out)
{
    int64_t b = 0;
    for (; b + 4 <= n; b += 4) {
        const __m128 d4 = _mm_loadu_ps(d + b);
        const __m256 d8 = _mm256_set_m128(_mm_unpackhi_ps(d4, d4), _mm_unpacklo_ps(d4, d4));
        _mm256_storeu_ps(out + 2 * b, _mm256_mul_ps(d8, _mm256_cvtepi32_ps(sums_of_8_halves(q + QN_ACT_BLOCK * b))));
    }
    for (int64_t i = 2 * b; i < 2 * n; i++) out[i] = d[i / 2] * (float)sum_of_half(q + 16 * i, _mm256_set1_epi16(1));
}

QN_INLINE void prefetch_block(const uint8_t *at, const int32_t n_bytes)
{
    for (int32_t i = 0; i < n_bytes; i += 64) _mm_prefetch((const char *)at + PREFETCH_BYTES + i, _MM_HINT_T0);
}

/* One panel, T tokens from token t0. */
QN_INLINE void direct_tile(const qn_matmul_args *a, const a16_format *f, a16_dot dot, const uint8_t *panel, int32_t t0, float *out, int64_t rows,
                           const int32_t T)
{
    const int64_t n_blocks = a->n_cols / QN_ACT_BLOCK, d_stride = a->act.q_stride / QN_ACT_BLOCK;
    const int16_t *tile_q = a->act.q + t0 * a->act.q_stride;
    const float *d_at = a->act.d + t0 * d_stride;
    const float *s_at = f->halves == 2 ? a->scratch + t0 * n_blocks * 2 : a->act.s + t0 * d_stride;
    const int64_t s_stride = f->halves == 2 ? 2 * n_blocks : d_stride;
    const int32_t *sums = (const int32_t *)a->scratch + t0 * n_blocks * f->halves;
    const int32_t n_pairs = 16 / f->halves;
    __m256 acc[2 * TILE];
    QN_UNROLL
    for (int32_t i = 0; i < 2 * T; i++) acc[i] = _mm256_setzero_ps();
    for (int64_t b = 0; b < n_blocks; b++) {
        const void *lines = f->lines(panel, b);
        const int16_t *q = tile_q + b * QN_ACT_BLOCK;
        if (t0 == 0) prefetch_block(panel + b * f->block_bytes, f->block_bytes);
        QN_UNROLL
        for (int32_t half = 0; half < f->halves; half++) {
            __m256i isum[2 * TILE];
            QN_UNROLL
            for (int32_t t = 0; t < T; t++)
                isum[2 * t] = isum[2 * t + 1] = f->offset ? _mm256_set1_epi32(sums[(t * n_blocks + b) * f->halves + half]) : _mm256_setzero_si256();
            QN_UNROLL
            for (int32_t p = half * n_pairs; p < (half + 1) * n_pairs; p++) {
                const __m256i w0 = f->pair(lines, 0, p), w1 = f->pair(lines, 1, p);
                QN_UNROLL
                for (int32_t t = 0; t < T; t++) {
                    const __m256i x = qn_bcast_pair(q + t * a->act.q_stride + 2 * p);
                    isum[2 * t] = dot(isum[2 * t], w0, x);
                    isum[2 * t + 1] = dot(isum[2 * t + 1], w1, x);
                    QN_IN_ORDER(isum[2 * t]);
                    QN_IN_ORDER(isum[2 * t + 1]);
                }
            }
            const __m256 d0 = f->scale(panel, b, 0, half), d1 = f->scale(panel, b, 1, half);
            QN_UNROLL
            for (int32_t t = 0; t < T; t++) {
                const __m256 d = _mm256_broadcast_ss(d_at + t * d_stride + b);
                acc[2 * t] = _mm256_fmadd_ps(_mm256_mul_ps(d0, d), _mm256_cvtepi32_ps(isum[2 * t]), acc[2 * t]);
                acc[2 * t + 1] = _mm256_fmadd_ps(_mm256_mul_ps(d1, d), _mm256_cvtepi32_ps(isum[2 * t + 1]), acc[2 * t + 1]);
            }
            if (!f->min) continue;
            const __m256 m0 = f->min(panel, b, 0, half), m1 = f->min(panel, b, 1, half);
            QN_UNROLL
            for (int32_t t = 0; t < T; t++) {
                const __m256 s = _mm256_broadcast_ss(s_at + t * s_stride + b * f->halves + half);
                acc[2 * t] = _mm256_fmadd_ps(m0, s, acc[2 * t]);
                acc[2 * t + 1] = _mm256_fmadd_ps(m1, s, acc[2 * t + 1]);
            }
        }
    }
    QN_UNROLL
    for (int32_t t = 0; t < T; t++) {
        qn_store8(out + t * a->out_stride, rows, acc[2 * t]);
        if (rows > 8) qn_store8(out + t * a->out_stride + 8, rows - 8, acc[2 * t + 1]);
    }
}

QN_INLINE void direct(const qn_matmul_args *a, const a16_format *f, a16_dot dot)
{
    const int64_t n_blocks = a->n_cols / QN_ACT_BLOCK, d_stride = a->act.q_stride / QN_ACT_BLOCK;
    if (f->offset) offset_sums(a, f, (int32_t *)a->scratch);
    for (int32_t t = 0; f->min && f->halves == 2 && t < a->n_tokens; t++)
        half_sums(a->act.q + t * a->act.q_stride, a->act.d + t * d_stride, n_blocks, a->scratch + t * n_blocks * 2);
    for (int64_t i = 0; i < a->n_panels; i++) {
        const uint8_t *panel = a->w + (size_t)i * a->panel_bytes;
        const int64_t rows = a->n_rows - QN_PANEL * i;
        float *out = a->out + QN_PANEL * i;
        int32_t t = 0;
        for (; t + TILE <= a->n_tokens; t += TILE) direct_tile(a, f, dot, panel, t, out + t * a->out_stride, rows, TILE);
        switch (a->n_tokens - t) {
        case 1: direct_tile(a, f, dot, panel, t, out + t * a->out_stride, rows, 1); break;
        case 2: direct_tile(a, f, dot, panel, t, out + t * a->out_stride, rows, 2); break;
        case 3: direct_tile(a, f, dot, panel, t, out + t * a->out_stride, rows, 3); break;
        }
    }
}

/* A piece of a panel as the inner loop wants it. */
typedef struct a16_piece {
    __m256i w[PIECE_BLOCKS][16][2];  /* [block][pair][rows 0-7, 8-15] int16 pairs */
    __m256 d[PIECE_BLOCKS][2][2];    /* [block][half][rows]                       */
    __m256 m[PIECE_BLOCKS][2][2];
    __m256 acc[2 * TILE];            /* [token][rows] of the tile at hand         */
    float s[TILE][PIECE_BLOCKS][2];  /* its sums of halves                        */
} a16_piece;
_Static_assert(sizeof(a16_piece) + 32 <= QN_MATMUL_SCRATCH * sizeof(float), "a piece fits the scratch memory");

QN_INLINE void piece_unpack(const a16_format *f, const uint8_t *panel, int64_t b0, int64_t n, a16_piece *out)
{
    const __m256i offset = _mm256_set1_epi16((int16_t)f->offset);
    for (int64_t b = 0; b < n; b++) {
        const void *lines = f->lines(panel, b0 + b);
        QN_UNROLL
        for (int32_t p = 0; p < 16; p++)
            QN_UNROLL
            for (int32_t h = 0; h < 2; h++) out->w[b][p][h] = f->offset ? _mm256_sub_epi16(f->pair(lines, h, p), offset) : f->pair(lines, h, p);
        QN_UNROLL
        for (int32_t h = 0; h < 2; h++) {
            QN_UNROLL
            for (int32_t half = 0; half < f->halves; half++) {
                out->d[b][half][h] = f->scale(panel, b0 + b, h, half);
                if (f->min) out->m[b][half][h] = f->min(panel, b0 + b, h, half);
            }
        }
    }
}

/* isum += w * q over the pairs of one scale, T tokens. */
QN_INLINE void piece_dot(a16_dot dot, __m256i (*w)[2], const int16_t *const *q, const int32_t first, const int32_t n_pairs, __m256i *isum,
                         const int32_t T)
{
    QN_UNROLL
    for (int32_t p = 0; p < n_pairs; p++) {
        const __m256i w0 = w[first + p][0], w1 = w[first + p][1];
        QN_UNROLL
        for (int32_t t = 0; t < T; t++) {
            const __m256i x = qn_bcast_pair(q[t] + 2 * (first + p));
            isum[2 * t] = dot(isum[2 * t], w0, x);
            isum[2 * t + 1] = dot(isum[2 * t + 1], w1, x);
            QN_IN_ORDER(isum[2 * t]);
            QN_IN_ORDER(isum[2 * t + 1]);
        }
    }
}

/* T tokens from token t0 and the n blocks from b0 of a panel: adds to what earlier pieces left in out. The float sums live in memory (w->acc):
 * the registers are for the integer sums, and a block of 32 columns touches each float sum once. */
QN_INLINE void piece_tile(const qn_matmul_args *a, const a16_format *f, a16_dot dot, a16_piece *w, int64_t b0, int64_t n, int32_t t0, float *out,
                          int64_t rows, const int32_t T)
{
    const int64_t d_stride = a->act.q_stride / QN_ACT_BLOCK;
    const int16_t *q[TILE];
    const float *d = a->act.d + t0 * d_stride + b0, *s = a->act.s + t0 * d_stride + b0;
    const int32_t n_pairs = 16 / f->halves;
    __m256 *acc = w->acc;
    QN_UNROLL
    for (int32_t t = 0; t < T; t++) {
        q[t] = a->act.q + (t0 + t) * a->act.q_stride + b0 * QN_ACT_BLOCK;
        acc[2 * t] = b0 ? qn_load8(out + t * a->out_stride, rows) : _mm256_setzero_ps();
        acc[2 * t + 1] = b0 && rows > 8 ? qn_load8(out + t * a->out_stride + 8, rows - 8) : _mm256_setzero_ps();
        if (f->min && f->halves == 2) half_sums(q[t], d + t * d_stride, n, w->s[t][0]);
    }
    const int64_t next = T * a->act.q_stride;
    for (int64_t b = 0; b < n; b++) {
        QN_UNROLL
        for (int32_t t = 0; t < T; t++) {
            _mm_prefetch((const char *)(q[t] + next), _MM_HINT_T0); /* of the next tile */
            QN_KEEP(q[t]);
        }
        QN_UNROLL
        for (int32_t half = 0; half < f->halves; half++) {
            __m256i isum[2 * TILE];
            QN_UNROLL
            for (int32_t i = 0; i < 2 * T; i++) isum[i] = _mm256_setzero_si256();
            piece_dot(dot, w->w[b], q, half * n_pairs, n_pairs, isum, T);
            QN_UNROLL
            for (int32_t t = 0; t < T; t++) {
                const __m256 x = _mm256_broadcast_ss(d + t * d_stride + b);
                __m256 y0 = _mm256_fmadd_ps(_mm256_mul_ps(w->d[b][half][0], x), _mm256_cvtepi32_ps(isum[2 * t]), acc[2 * t]);
                __m256 y1 = _mm256_fmadd_ps(_mm256_mul_ps(w->d[b][half][1], x), _mm256_cvtepi32_ps(isum[2 * t + 1]), acc[2 * t + 1]);
                if (f->min) {
                    const __m256 z = _mm256_broadcast_ss(f->halves == 2 ? &w->s[t][b][half] : s + t * d_stride + b);
                    y0 = _mm256_fmadd_ps(w->m[b][half][0], z, y0);
                    y1 = _mm256_fmadd_ps(w->m[b][half][1], z, y1);
                }
                acc[2 * t] = y0;
                acc[2 * t + 1] = y1;
            }
        }
        QN_UNROLL
        for (int32_t t = 0; t < T; t++) q[t] += QN_ACT_BLOCK;
    }
    for (int32_t t = 0; t < T; t++) {
        qn_store8(out + t * a->out_stride, rows, acc[2 * t]);
        if (rows > 8) qn_store8(out + t * a->out_stride + 8, rows - 8, acc[2 * t + 1]);
    }
}

QN_INLINE void unpacked(const qn_matmul_args *a, const a16_format *f, a16_dot dot)
{
    a16_piece *piece = (a16_piece *)(((uintptr_t)a->scratch + 31) / 32 * 32);
    const int64_t n_blocks = a->n_cols / QN_ACT_BLOCK, n_pieces = (n_blocks + PIECE_BLOCKS - 1) / PIECE_BLOCKS;
    const int64_t step = (n_blocks + n_pieces - 1) / n_pieces; /* pieces of one length: 9 + 9 blocks, not 16 + 2 */
    for (int64_t i = 0; i < a->n_panels; i++) {
        const uint8_t *panel = a->w + (size_t)i * a->panel_bytes;
        const int64_t rows = a->n_rows - QN_PANEL * i;
        for (int64_t b0 = 0; b0 < n_blocks; b0 += step) {
            const int64_t n = n_blocks - b0 < step ? n_blocks - b0 : step;
            piece_unpack(f, panel, b0, n, piece);
            int32_t t = 0;
            float *out = a->out + QN_PANEL * i;
            for (; t + TILE <= a->n_tokens; t += TILE) piece_tile(a, f, dot, piece, b0, n, t, out + t * a->out_stride, rows, TILE);
            switch (a->n_tokens - t) {
            case 1: piece_tile(a, f, dot, piece, b0, n, t, out + t * a->out_stride, rows, 1); break;
            case 2: piece_tile(a, f, dot, piece, b0, n, t, out + t * a->out_stride, rows, 2); break;
            case 3: piece_tile(a, f, dot, piece, b0, n, t, out + t * a->out_stride, rows, 3); break;
            }
        }
    }
}

/** The level's multiply-add on registers, for qn_kernels.peak. */
QN_INLINE int64_t qn_peak_a16_avx2(int64_t rounds, a16_dot dot)
{
    enum { N_SUMS = 10 }; /* five cycles of latency, up to two a cycle */
    __m256i sum[N_SUMS], w = _mm256_set1_epi16(1);
    QN_UNROLL
    for (int32_t j = 0; j < N_SUMS; j++) sum[j] = _mm256_setzero_si256();
    for (int64_t i = 0; i < rounds; i++) {
        QN_UNROLL
        for (int32_t j = 0; j < N_SUMS; j++) {
            QN_IN_ORDER(w); /* unknown to the compiler, or it would multiply once for all */
            sum[j] = dot(sum[j], w, w);
            QN_IN_ORDER(sum[j]);
        }
    }
    return rounds * N_SUMS * 16;
}

/** `run` of a row: f and dot must be constants. Direct tiles of formats with an offset, or with minimums of halves, need room for the sums. */
QN_INLINE void qn_matmul_a16_avx2(const qn_matmul_args *a, const a16_format *f, a16_dot dot)
{
    if (a->n_tokens <= f->direct && a->n_tokens * (a->n_cols / 16) <= QN_MATMUL_SCRATCH) direct(a, f, dot);
    else unpacked(a, f, dot);
}

#endif

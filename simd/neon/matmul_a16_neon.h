/**
 * Products of quantised panels with A16 activations, for every Arm level.
 *
 * A format gives bytes of weights (arm_format, simd/neon/formats_*_neon.h); a level gives what it makes of them and how it multiplies
 * (simd/<level>/level_<level>.h, included before this): the weights of 8 rows and 8 columns are an `arm_weights`, the activations of 8 columns an
 * `arm_input`, the integer sums of 8 rows for one token an `arm_sums`. Both are constants, so that every function below is compiled for them.
 * Few tokens take the weights straight from the panel (direct); many unpack a piece of the panel once, into the L1 cache (unpacked), and
 * multiply it in tiles of 8 rows and 4 tokens, whose integer and float sums fill the 32 registers. Both give the same bits.
 */
#ifndef QN_SIMD_MATMUL_A16_NEON_H
#define QN_SIMD_MATMUL_A16_NEON_H

#include "simd/neon/neon.h"

enum {
    TILE = 4,             /* tokens at a time                                    */
    DIRECT = 2,           /* tokens that take the weights from the panel         */
    PIECE_BLOCKS = 16,    /* blocks of a piece: 512 columns                      */
    PREFETCH_BYTES = 1024 /* ahead of the panel being read                       */
};

/** 8 columns of 4 rows, 4 bytes a row: a has columns 0 4 1 5, b has 2 6 3 7, as a nibble line gives them. */
typedef struct arm_bytes {
    int8x16_t a, b;
} arm_bytes;

typedef struct arm_format {
    arm_bytes (*bytes)(const uint8_t *panel, int64_t b, int32_t quad, int32_t g);              /* rows 4 quad .., columns 8g .. of block b */
    void (*scales)(const uint8_t *panel, int64_t b, int32_t half, float32x4_t *out);            /* of 16 rows: 4 registers */
    void (*mins)(const uint8_t *panel, int64_t b, int32_t half, float32x4_t *out);              /* NULL: none              */
    int32_t halves;                                                                             /* scales in a block: 1 or 2 */
    int32_t block_bytes;                                                                        /* of 16 rows, on average  */
} arm_format;

QN_INLINE arm_weights weights(const arm_format *f, const uint8_t *panel, int64_t b, int32_t h, int32_t g)
{
    return arm_weights_of(f->bytes(panel, b, 2 * h, g), f->bytes(panel, b, 2 * h + 1, g));
}

/* d * sum(q) of the halves of n blocks: [block][2]. */
QN_INLINE void half_sums(const int16_t *q, const float *d, int64_t n, float *out)
{
    for (int64_t i = 0; i < 2 * n; i++) {
        const int32x4_t pairs = vaddq_s32(vpaddlq_s16(vld1q_s16(q + 16 * i)), vpaddlq_s16(vld1q_s16(q + 16 * i + 8)));
        out[i] = d[i / 2] * (float)vaddvq_s32(pairs);
    }
}

/* acc += isum * (scale * d), then += min * s, of 8 rows. */
QN_INLINE void combine(float32x4_t *acc, const arm_sums *sums, const float32x4_t *scale, const float32x4_t *min, float d, float s)
{
    int32x4_t isum[2];
    arm_total(sums, isum);
    QN_UNROLL
    for (int32_t i = 0; i < 2; i++) {
        acc[i] = vfmaq_f32(acc[i], vmulq_n_f32(scale[i], d), vcvtq_f32_s32(isum[i]));
        if (min) acc[i] = vfmaq_n_f32(acc[i], min[i], s);
    }
}

QN_INLINE void store_rows(float *out, int64_t rows, const float32x4_t *v, const int32_t n)
{
    QN_UNROLL
    for (int32_t i = 0; i < n; i++)
        if (rows > 4 * i) qn_store4(out + 4 * i, rows - 4 * i, v[i]);
}

/* One panel, T tokens. */
QN_INLINE void direct_tile(const qn_matmul_args *a, const arm_format *f, const uint8_t *panel, float *out, int64_t rows, const int32_t T)
{
    const int64_t n_blocks = a->n_cols / QN_ACT_BLOCK, d_stride = a->act.q_stride / QN_ACT_BLOCK;
    const float *s_at = f->halves == 2 ? a->scratch : a->act.s;
    const int64_t s_stride = f->halves == 2 ? 2 * n_blocks : d_stride;
    const int32_t n_groups = 4 / f->halves;
    float32x4_t acc[4 * DIRECT];
    QN_UNROLL
    for (int32_t i = 0; i < 4 * T; i++) acc[i] = vdupq_n_f32(0);
    for (int64_t b = 0; b < n_blocks; b++) {
        for (int32_t i = 0; i < f->block_bytes; i += 64) __builtin_prefetch(panel + b * f->block_bytes + PREFETCH_BYTES + i);
        QN_UNROLL
        for (int32_t half = 0; half < f->halves; half++) {
            float32x4_t scale[4], min[4];
            f->scales(panel, b, half, scale);
            if (f->mins) f->mins(panel, b, half, min);
            QN_UNROLL
            for (int32_t h = 0; h < 2; h++) {
                arm_sums sums[DIRECT];
                QN_UNROLL
                for (int32_t t = 0; t < T; t++) sums[t] = arm_zero();
                QN_UNROLL
                for (int32_t g = half * n_groups; g < (half + 1) * n_groups; g++) {
                    const arm_weights w = weights(f, panel, b, h, g);
                    QN_UNROLL
                    for (int32_t t = 0; t < T; t++) arm_dot(&sums[t], &w, arm_load(&a->act, t, b * QN_ACT_BLOCK + 8 * g));
                }
                QN_UNROLL
                for (int32_t t = 0; t < T; t++) {
                    const float s = f->mins ? s_at[t * s_stride + b * f->halves + half] : 0;
                    combine(acc + 4 * t + 2 * h, &sums[t], scale + 2 * h, f->mins ? min + 2 * h : NULL, a->act.d[t * d_stride + b], s);
                }
            }
        }
    }
    QN_UNROLL
    for (int32_t t = 0; t < T; t++) store_rows(out + t * a->out_stride, rows, acc + 4 * t, 4);
}

QN_INLINE void direct(const qn_matmul_args *a, const arm_format *f, const int32_t T)
{
    const int64_t n_blocks = a->n_cols / QN_ACT_BLOCK, d_stride = a->act.q_stride / QN_ACT_BLOCK;
    for (int32_t t = 0; f->mins && f->halves == 2 && t < T; t++)
        half_sums(a->act.q + t * a->act.q_stride, a->act.d + t * d_stride, n_blocks, a->scratch + t * n_blocks * 2);
    for (int64_t i = 0; i < a->n_panels; i++)
        direct_tile(a, f, a->w + (size_t)i * a->panel_bytes, a->out + QN_PANEL * i, a->n_rows - QN_PANEL * i, T);
}

/* A piece of a panel as the inner loop wants it. */
typedef struct arm_piece {
    arm_weights w[PIECE_BLOCKS][2][4];      /* [block][rows 0-7, 8-15][columns 8g ..] */
    float32x4_t d[PIECE_BLOCKS][2][4];      /* [block][half][rows]                    */
    float32x4_t m[PIECE_BLOCKS][2][4];
    float s[TILE][PIECE_BLOCKS][2];         /* sums of halves of the tile at hand     */
} arm_piece;
_Static_assert(sizeof(arm_piece) + 16 <= QN_MATMUL_SCRATCH * sizeof(float), "a piece fits the scratch memory");

QN_INLINE void piece_unpack(const arm_format *f, const uint8_t *panel, int64_t b0, int64_t n, arm_piece *out)
{
    for (int64_t b = 0; b < n; b++) {
        QN_UNROLL
        for (int32_t h = 0; h < 2; h++)
            QN_UNROLL
            for (int32_t g = 0; g < 4; g++) out->w[b][h][g] = weights(f, panel, b0 + b, h, g);
        QN_UNROLL
        for (int32_t half = 0; half < f->halves; half++) {
            f->scales(panel, b0 + b, half, out->d[b][half]);
            if (f->mins) f->mins(panel, b0 + b, half, out->m[b][half]);
        }
    }
}

/* T tokens from t0, rows 8h .. of the n blocks from b0: adds to what earlier pieces left in out. */
QN_INLINE void piece_tile(const qn_matmul_args *a, const arm_format *f, const arm_piece *w, int64_t b0, int64_t n, int32_t t0, int32_t h, float *out,
                          int64_t rows, const int32_t T)
{
    const int64_t d_stride = a->act.q_stride / QN_ACT_BLOCK;
    const float *d = a->act.d + t0 * d_stride + b0, *s = a->act.s + t0 * d_stride + b0;
    const int32_t n_groups = 4 / f->halves;
    float32x4_t acc[2 * TILE];
    QN_UNROLL
    for (int32_t i = 0; i < 2 * T; i++) {
        const int64_t left = rows - i % 2 * 4;
        acc[i] = b0 && left > 0 ? qn_load4(out + i / 2 * a->out_stride + i % 2 * 4, left) : vdupq_n_f32(0);
    }
    for (int64_t b = 0; b < n; b++) {
        QN_UNROLL
        for (int32_t half = 0; half < f->halves; half++) {
            arm_sums sums[TILE];
            QN_UNROLL
            for (int32_t t = 0; t < T; t++) sums[t] = arm_zero();
            QN_UNROLL
            for (int32_t g = half * n_groups; g < (half + 1) * n_groups; g++) {
                const arm_weights *at = &w->w[b][h][g];
                QN_UNROLL
                for (int32_t t = 0; t < T; t++) {
                    arm_dot(&sums[t], at, arm_load(&a->act, t0 + t, (b0 + b) * QN_ACT_BLOCK + 8 * g));
                    arm_in_order(&sums[t]);
                }
            }
            QN_UNROLL
            for (int32_t t = 0; t < T; t++) {
                const float s_of = !f->mins ? 0 : f->halves == 2 ? w->s[t][b][half] : s[t * d_stride + b];
                combine(acc + 2 * t, &sums[t], w->d[b][half] + 2 * h, f->mins ? w->m[b][half] + 2 * h : NULL, d[t * d_stride + b], s_of);
            }
        }
    }
    QN_UNROLL
    for (int32_t t = 0; t < T; t++) store_rows(out + t * a->out_stride, rows, acc + 2 * t, 2);
}

QN_INLINE void piece_run(const qn_matmul_args *a, const arm_format *f, arm_piece *w, int64_t b0, int64_t n, int32_t t, float *out, int64_t rows,
                         const int32_t T)
{
    const int64_t d_stride = a->act.q_stride / QN_ACT_BLOCK;
    for (int32_t i = 0; f->mins && f->halves == 2 && i < T; i++)
        half_sums(a->act.q + (t + i) * a->act.q_stride + b0 * QN_ACT_BLOCK, a->act.d + (t + i) * d_stride + b0, n, w->s[i][0]);
    for (int32_t h = 0; h < 2 && rows > 8 * h; h++) piece_tile(a, f, w, b0, n, t, h, out + t * a->out_stride + 8 * h, rows - 8 * h, T);
}

QN_INLINE void unpacked(const qn_matmul_args *a, const arm_format *f)
{
    arm_piece *piece = (arm_piece *)(((uintptr_t)a->scratch + 15) / 16 * 16);
    const int64_t n_blocks = a->n_cols / QN_ACT_BLOCK, n_pieces = (n_blocks + PIECE_BLOCKS - 1) / PIECE_BLOCKS;
    const int64_t step = (n_blocks + n_pieces - 1) / n_pieces; /* pieces of one length: 9 + 9 blocks, not 16 + 2 */
    for (int64_t i = 0; i < a->n_panels; i++) {
        const uint8_t *panel = a->w + (size_t)i * a->panel_bytes;
        const int64_t rows = a->n_rows - QN_PANEL * i;
        float *out = a->out + QN_PANEL * i;
        for (int64_t b0 = 0; b0 < n_blocks; b0 += step) {
            const int64_t n = n_blocks - b0 < step ? n_blocks - b0 : step;
            piece_unpack(f, panel, b0, n, piece);
            int32_t t = 0;
            for (; t + TILE <= a->n_tokens; t += TILE) piece_run(a, f, piece, b0, n, t, out, rows, TILE);
            switch (a->n_tokens - t) {
            case 1: piece_run(a, f, piece, b0, n, t, out, rows, 1); break;
            case 2: piece_run(a, f, piece, b0, n, t, out, rows, 2); break;
            case 3: piece_run(a, f, piece, b0, n, t, out, rows, 3); break;
            }
        }
    }
}

/** `run` of a row: f must be a constant. Direct tiles of formats with minimums of halves need room for the sums. */
QN_INLINE void arm_matmul(const qn_matmul_args *a, const arm_format *f)
{
    const bool room = a->n_tokens * (a->n_cols / 16) <= QN_MATMUL_SCRATCH;
    if (a->n_tokens == 1 && room) direct(a, f, 1);
    else if (a->n_tokens == 2 && room) direct(a, f, 2);
    else unpacked(a, f);
}

/* For the lists of formats: a function of each, and its row. */
#define ARM_MATMUL(name, fmt_name)                                                                                                                     \
    static void matmul_##name(const qn_matmul_args *a)                                                                                                 \
    {                                                                                                                                                  \
        arm_matmul(a, &name##_format);                                                                                                                 \
    }
#define ARM_ROW(name, fmt_name) qn_run_set(k, fmt_name, ARM_LEVEL, matmul_##name);

#endif

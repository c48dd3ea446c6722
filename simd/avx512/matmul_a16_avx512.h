/**
 * Products of quantised panels with A16 activations, for any level that has 512-bit registers: the level supplies the dot product.
 */
#ifndef QN_SIMD_MATMUL_A16_AVX512_H
#define QN_SIMD_MATMUL_A16_AVX512_H

#include "simd/avx512/formats_a16_avx512.h"

enum {
    TILE = 14,            /* tokens at a time: 14 integer and 14 float sums leave 4 registers                       */
    PREFETCH_BYTES = 2560 /* ahead of the panel being read: the hardware's own prefetch stops at page borders */
};

typedef int32_t __attribute__((may_alias, aligned(2))) qn_pair;
typedef __m512i a16_dot(__m512i acc, __m512i w, const qn_pair *q);

/* Without VNNI: a product more. */
QN_INLINE __m512i qn_dot_avx512(__m512i acc, __m512i w, const qn_pair *q)
{
    acc = _mm512_add_epi32(acc, _mm512_madd_epi16(w, _mm512_set1_epi32(*q)));
    QN_IN_ORDER16(acc);
    return acc;
}

QN_INLINE void prefetch_block(const uint8_t *at, const int32_t n_bytes)
{
    for (int32_t i = 0; i < n_bytes; i += 64) _mm_prefetch((const char *)at + PREFETCH_BYTES + i, _MM_HINT_T0);
}

/* Are minimums those of 16 weights, so that they meet sums of 16 activations, which are made first? */
QN_INLINE bool has_half_sums(const a16_format *f)
{
    return f->min && f->halves == 2;
}

/* d * sum(q) of the halves of all blocks of tokens [t, end), into the scratch memory: [token][block][2]. */
QN_INLINE void half_sums(const qn_matmul_args *a, int32_t t, int32_t end)
{
    const int64_t n_blocks = a->n_cols / QN_ACT_BLOCK;
    float *out = a->scratch;
    for (; t < end; t++)
        for (int64_t b = 0; b < n_blocks; b++, out += 2) {
            const __m512i q = _mm512_loadu_si512(a->act.q + t * a->act.q_stride + b * QN_ACT_BLOCK);
            const float d = a->act.d[t * (a->act.q_stride / QN_ACT_BLOCK) + b];
            __m512i s = _mm512_madd_epi16(q, _mm512_set1_epi16(1));
            s = _mm512_add_epi32(s, _mm512_shuffle_epi32(s, (_MM_PERM_ENUM)0x4e));
            s = _mm512_add_epi32(s, _mm512_shuffle_epi32(s, (_MM_PERM_ENUM)0xb1));
            s = _mm512_add_epi32(s, _mm512_shuffle_i32x4(s, s, 0xb1));
            out[0] = d * (float)_mm_cvtsi128_si32(_mm512_castsi512_si128(s));
            out[1] = d * (float)_mm_cvtsi128_si32(_mm512_extracti32x4_epi32(s, 2));
        }
}

/* One panel, T tokens from token t0; sums of halves begin at token s0. */
QN_INLINE void direct_tile(const qn_matmul_args *a, const a16_format *f, a16_dot dot, const uint8_t *panel, int32_t s0, int32_t t0, float *out,
                           int64_t rows, const int32_t T)
{
    const int64_t n_blocks = a->n_cols / QN_ACT_BLOCK, d_stride = a->act.q_stride / QN_ACT_BLOCK;
    qn_rows14 q = qn_rows14_open(a->act.q + t0 * a->act.q_stride, a->act.q_stride * 2);
    qn_rows14 d = qn_rows14_open(a->act.d + t0 * d_stride, d_stride * 4);
    qn_rows14 s = has_half_sums(f) ? qn_rows14_open(a->scratch + (t0 - s0) * 2 * n_blocks, n_blocks * 8)
                                   : qn_rows14_open(a->act.s + t0 * d_stride, d_stride * 4);
    const int32_t n_pairs = 16 / f->halves;
    __m512 acc[TILE];
    QN_UNROLL
    for (int32_t t = 0; t < T; t++) acc[t] = _mm512_setzero_ps();
    for (int64_t b = 0; b < n_blocks; b++) {
        const void *lines = f->lines(panel, b);
        if (t0 == 0) prefetch_block(panel + b * f->block_bytes, f->block_bytes);
        QN_UNROLL
        for (int32_t half = 0; half < f->halves; half++) {
            __m512i isum[TILE];
            QN_UNROLL
            for (int32_t t = 0; t < T; t++) isum[t] = _mm512_setzero_si512();
            QN_UNROLL
            for (int32_t p = half * n_pairs; p < (half + 1) * n_pairs; p++) {
                const __m512i w = f->pair(lines, p);
                QN_UNROLL
                for (int32_t t = 0; t < T; t++) isum[t] = dot(isum[t], w, qn_rows14_at(&q, t));
                qn_rows14_step(&q, 4);
            }
            const __m512 scale = f->scale(panel, b, half);
            QN_UNROLL
            for (int32_t t = 0; t < T; t++) {
                const __m512 x = _mm512_set1_ps(*(const float *)qn_rows14_at(&d, t));
                acc[t] = _mm512_fmadd_ps(_mm512_mul_ps(scale, x), _mm512_cvtepi32_ps(isum[t]), acc[t]);
            }
            if (!f->min) continue;
            const __m512 min = f->min(panel, b, half);
            QN_UNROLL
            for (int32_t t = 0; t < T; t++) acc[t] = _mm512_fmadd_ps(min, _mm512_set1_ps(*(const float *)qn_rows14_at(&s, t)), acc[t]);
            qn_rows14_step(&s, 4);
        }
        qn_rows14_step(&d, 4);
    }
    QN_UNROLL
    for (int32_t t = 0; t < T; t++) qn_store16(out + t * a->out_stride, rows, acc[t]);
}

/* Tokens [t, end) over a panel before the next one: it stays in the L1 cache. */
QN_INLINE void direct(const qn_matmul_args *a, const a16_format *f, a16_dot dot, int32_t begin, int32_t end)
{
    if (has_half_sums(f)) half_sums(a, begin, end);
    for (int64_t i = 0; i < a->n_panels; i++) {
        const uint8_t *panel = a->w + (size_t)i * a->panel_bytes;
        const int64_t rows = a->n_rows - QN_PANEL * i;
        float *out = a->out + QN_PANEL * i;
        int32_t t = begin;
        for (; t + TILE <= end; t += TILE) direct_tile(a, f, dot, panel, begin, t, out + t * a->out_stride, rows, TILE);
        for (; t + 8 <= end; t += 8) direct_tile(a, f, dot, panel, begin, t, out + t * a->out_stride, rows, 8);
        for (; t + 4 <= end; t += 4) direct_tile(a, f, dot, panel, begin, t, out + t * a->out_stride, rows, 4);
        for (; t + 2 <= end; t += 2) direct_tile(a, f, dot, panel, begin, t, out + t * a->out_stride, rows, 2);
        if (t < end) direct_tile(a, f, dot, panel, begin, t, out + t * a->out_stride, rows, 1);
    }
}

/* Tokens that are worked on together: all, or as many as have room for their sums. */
QN_INLINE int32_t group_tokens(const qn_matmul_args *a, const a16_format *f)
{
    const int64_t room = QN_MATMUL_SCRATCH / (a->n_cols / 16);
    return !has_half_sums(f) || room >= a->n_tokens ? a->n_tokens : room > TILE ? (int32_t)(room / TILE * TILE) : (int32_t)room;
}

/** The level's multiply-add on registers, for qn_kernels.peak. */
QN_INLINE int64_t qn_peak_a16_avx512(int64_t rounds, a16_dot dot)
{
    enum { N_SUMS = 8 }; /* four cycles of latency, up to two a cycle */
    const qn_pair q = 0x00010001;
    __m512i sum[N_SUMS], w = _mm512_set1_epi16(1);
    QN_UNROLL
    for (int32_t j = 0; j < N_SUMS; j++) sum[j] = _mm512_setzero_si512();
    for (int64_t i = 0; i < rounds; i++) {
        QN_UNROLL
        for (int32_t j = 0; j < N_SUMS; j++) {
            QN_IN_ORDER16(w); /* unknown to the compiler, or it would multiply once for all */
            sum[j] = dot(sum[j], w, &q);
            QN_IN_ORDER16(sum[j]);
        }
    }
    return rounds * N_SUMS * 32;
}

/** `run` of a row: f and dot must be constants. */
QN_INLINE void qn_matmul_a16_avx512(const qn_matmul_args *a, const a16_format *f, a16_dot dot)
{
    const int32_t group = group_tokens(a, f);
    for (int32_t t = 0; t < a->n_tokens; t += group) direct(a, f, dot, t, t + group < a->n_tokens ? t + group : a->n_tokens);
}

#endif

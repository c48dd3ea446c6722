/**
 * A16 products of few tokens, where the cost is unpacking weights: activations are cut into two signed bytes, q = 256 hi + lo, so that weights are
 * unpacked to bytes (one or two instructions for 64 weights) and not to 16 bits (three for 32). The integers are the same. With Q4_K that is 44
 * vector instructions a block in place of 58, and 84 in place of 130 with Q6_K. With more than QN_DIGIT_TOKENS,
 * unpacking is shared by enough of them.
 */
#ifndef QN_SIMD_DIGITS_AVX512VNNI_H
#define QN_SIMD_DIGITS_AVX512VNNI_H

#include "simd/avx512vnni/avx512vnni.h"

enum { QN_DIGIT_TOKENS = 4, DIGIT_BYTES = 2 * QN_ACT_BLOCK };

/* What a call makes first of its activations, [token][block] each. */
typedef struct digits {
    int64_t n_blocks;
    int8_t *q;    /* [DIGIT_BYTES]: hi, then lo, each 8 in QN_A8_ORDER              */
    int32_t *sum; /* [2]: -offset * sum(q) of the block, or of each half            */
    float *s;     /* [2]: d * sum(q) of the halves; formats with such minimums only */
} digits;

QN_INLINE size_t digits_bytes(int64_t n_blocks, int32_t n_tokens)
{
    return (size_t)(n_blocks * n_tokens) * (DIGIT_BYTES + 2 * sizeof(int32_t) + 2 * sizeof(float)) + 64;
}

QN_INLINE digits digits_open(const qn_matmul_args *a)
{
    const int64_t n_blocks = a->n_cols / QN_ACT_BLOCK, n = n_blocks * a->n_tokens;
    int8_t *q = (int8_t *)(((uintptr_t)a->scratch + 63) / 64 * 64);
    int32_t *sum = (int32_t *)(void *)(q + n * DIGIT_BYTES);
    return (digits){ n_blocks, q, sum, (float *)(void *)(sum + 2 * n) };
}

QN_INLINE __m256i digit_order(__m512i x)
{
    const __m256i order = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15));
    return _mm256_shuffle_epi8(_mm512_cvtepi16_epi8(x), order);
}

/* Block i = token * n_blocks + block; q16: its integers. */
QN_INLINE void digits_block(const digits *g, const a8_format *f, const int32_t offset, const int16_t *q16, float d, int64_t i)
{
    const __m512i q = _mm512_loadu_si512(q16);
    _mm256_store_si256((__m256i *)(void *)(g->q + i * DIGIT_BYTES), digit_order(_mm512_srai_epi16(_mm512_add_epi16(q, _mm512_set1_epi16(128)), 8)));
    _mm256_store_si256((__m256i *)(void *)(g->q + i * DIGIT_BYTES + QN_ACT_BLOCK), digit_order(q));
    if (!offset && !has_half_sums(f->base)) return;
    __m512i s = _mm512_madd_epi16(q, _mm512_set1_epi16(1)); /* 8 sums of pairs to a half */
    s = _mm512_add_epi32(s, _mm512_shuffle_epi32(s, (_MM_PERM_ENUM)0x4e));
    s = _mm512_add_epi32(s, _mm512_shuffle_epi32(s, (_MM_PERM_ENUM)0xb1));
    s = _mm512_add_epi32(s, _mm512_shuffle_i32x4(s, s, 0xb1));
    const int32_t low = _mm_cvtsi128_si32(_mm512_castsi512_si128(s)), high = _mm_cvtsi128_si32(_mm512_extracti32x4_epi32(s, 2));
    g->sum[2 * i] = -offset * (f->base->halves == 2 ? low : low + high);
    g->sum[2 * i + 1] = -offset * high;
    if (!has_half_sums(f->base)) return;
    g->s[2 * i] = d * (float)low;
    g->s[2 * i + 1] = d * (float)high;
}

QN_INLINE void digits_make(const qn_matmul_args *a, const digits *g, const a8_format *f, const int32_t offset)
{
    const int64_t d_stride = a->act.q_stride / QN_ACT_BLOCK;
    for (int32_t t = 0; t < a->n_tokens; t++)
        for (int64_t b = 0; b < g->n_blocks; b++)
            digits_block(g, f, offset, a->act.q + t * a->act.q_stride + b * QN_ACT_BLOCK, a->act.d[t * d_stride + b], t * g->n_blocks + b);
}

/* isum[t]: half of block b of one panel times T tokens from t0. */
QN_INLINE void digits_dot(const digits *g, const a8_format *f, const int32_t offset, const void *lines, int64_t b, const int32_t half, int32_t t0,
                          __m512i *isum, const int32_t T)
{
    const int32_t n = 8 / f->base->halves;
    __m512i hi[QN_DIGIT_TOKENS];
    QN_UNROLL
    for (int32_t t = 0; t < T; t++) {
        hi[t] = _mm512_setzero_si512();
        isum[t] = offset ? _mm512_set1_epi32(g->sum[2 * ((t0 + t) * g->n_blocks + b) + half]) : _mm512_setzero_si512();
    }
    QN_UNROLL
    for (int32_t i = half * n; i < (half + 1) * n; i++) {
        const __m512i w = a8_weights(f, qn_dot8_avx512vnni, lines, i);
        QN_UNROLL
        for (int32_t t = 0; t < T; t++) {
            const int8_t *q = g->q + ((t0 + t) * g->n_blocks + b) * DIGIT_BYTES + 4 * i;
            hi[t] = qn_dot8_avx512vnni(hi[t], w, (const qn_pair *)(const void *)q);
            isum[t] = qn_dot8_avx512vnni(isum[t], w, (const qn_pair *)(const void *)(q + QN_ACT_BLOCK));
        }
    }
    QN_UNROLL
    for (int32_t t = 0; t < T; t++) isum[t] = _mm512_add_epi32(isum[t], _mm512_slli_epi32(hi[t], 8));
}

/* One panel, T tokens from t0. */
QN_INLINE void digits_tile(const qn_matmul_args *a, const digits *g, const a8_format *f, const int32_t offset, const uint8_t *panel, int32_t t0, float *out,
                           int64_t rows, const int32_t T)
{
    const int64_t d_stride = a->act.q_stride / QN_ACT_BLOCK;
    __m512 acc[QN_DIGIT_TOKENS];
    QN_UNROLL
    for (int32_t t = 0; t < T; t++) acc[t] = _mm512_setzero_ps();
    for (int64_t b = 0; b < g->n_blocks; b++) {
        const void *lines = f->base->lines(panel, b);
        if (t0 == 0) prefetch_block(panel + b * f->base->block_bytes, f->base->block_bytes);
        QN_UNROLL
        for (int32_t half = 0; half < f->base->halves; half++) {
            __m512i isum[QN_DIGIT_TOKENS];
            digits_dot(g, f, offset, lines, b, half, t0, isum, T);
            const __m512 scale = f->base->scale(panel, b, half);
            QN_UNROLL
            for (int32_t t = 0; t < T; t++) {
                const __m512 d = _mm512_set1_ps(a->act.d[(t0 + t) * d_stride + b]);
                acc[t] = _mm512_fmadd_ps(_mm512_mul_ps(scale, d), _mm512_cvtepi32_ps(isum[t]), acc[t]);
            }
            if (!f->base->min) continue;
            const __m512 min = f->base->min(panel, b, half);
            QN_UNROLL
            for (int32_t t = 0; t < T; t++) {
                const float s = has_half_sums(f->base) ? g->s[2 * ((t0 + t) * g->n_blocks + b) + half] : a->act.s[(t0 + t) * d_stride + b];
                acc[t] = _mm512_fmadd_ps(min, _mm512_set1_ps(s), acc[t]);
            }
        }
    }
    QN_UNROLL
    for (int32_t t = 0; t < T; t++) qn_store16(out + t * a->out_stride, rows, acc[t]);
}

QN_INLINE void digits_panels(const qn_matmul_args *a, const a8_format *f, const int32_t offset)
{
    const digits g = digits_open(a);
    digits_make(a, &g, f, offset);
    for (int64_t i = 0; i < a->n_panels; i++) {
        const uint8_t *panel = a->w + (size_t)i * a->panel_bytes;
        const int64_t rows = a->n_rows - QN_PANEL * i;
        float *out = a->out + QN_PANEL * i;
        switch (a->n_tokens) {
        case 1: digits_tile(a, &g, f, offset, panel, 0, out, rows, 1); break;
        case 2: digits_tile(a, &g, f, offset, panel, 0, out, rows, 2); break;
        case 3: digits_tile(a, &g, f, offset, panel, 0, out, rows, 3); break;
        default: digits_tile(a, &g, f, offset, panel, 0, out, rows, 4);
        }
    }
}

/** `run` of a row whose weights have less than eight bits: f must be a constant. */
QN_INLINE void qn_matmul_digits_avx512vnni(const qn_matmul_args *a, const a8_format *f)
{
    const bool few = a->n_tokens <= QN_DIGIT_TOKENS && digits_bytes(a->n_cols / QN_ACT_BLOCK, a->n_tokens) <= QN_MATMUL_SCRATCH * sizeof(float);
    if (few) digits_panels(a, f, f->most > 127 ? 128 : f->offset);
    else qn_matmul_a16_avx512(a, f->base, qn_dot_avx512vnni);
}

#endif

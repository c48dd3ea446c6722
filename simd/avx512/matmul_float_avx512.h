/**
 * Products of float panels, [column][16 rows], with float32 activations: one chain of fma per output. The chains of several panels (few tokens) or
 * of 12 tokens and 2 panels (many) hide its latency of 4 cycles.
 */
#ifndef QN_SIMD_MATMUL_FLOAT_AVX512_H
#define QN_SIMD_MATMUL_FLOAT_AVX512_H

#include "simd/avx512/avx512.h"

enum { FLOAT_TILE = 12, FLOAT_PREFETCH_BYTES = 1536 };

typedef struct float_format {
    __m512 (*load16)(const uint8_t *w); /* 16 weights as float32 */
    int32_t bytes;                      /* of a weight           */
} float_format;

/* T tokens from t0 and P neighbouring panels from panel i. Panels are whole but for the call's last rows. */
QN_INLINE void qn_float_tile(const qn_matmul_args *a, const float_format *f, int64_t i, int32_t t0, const int32_t T, const int32_t P, const bool fetch)
{
    const uint8_t *w = a->w + (size_t)i * a->panel_bytes;
    const int64_t rows = a->n_rows - QN_PANEL * i, line = 64 / (QN_PANEL * f->bytes); /* columns in a cache line: 1 or 2 */
    qn_rows14 x = qn_rows14_open(a->act.x + t0 * a->act.x_stride, a->act.x_stride * 4);
    float *out = a->out + t0 * a->out_stride + QN_PANEL * i;
    __m512 acc[24];
    QN_UNROLL
    for (int32_t t = 0; t < T; t++) /* two loops: QN_UNROLL goes to 16 turns */
        QN_UNROLL
        for (int32_t p = 0; p < P; p++) acc[t * P + p] = _mm512_setzero_ps();
    for (int64_t c = 0; c < a->n_cols; c++, w += QN_PANEL * f->bytes) {
        __m512 v[4];
        QN_UNROLL
        for (int32_t p = 0; p < P; p++) {
            v[p] = f->load16(w + (size_t)p * a->panel_bytes);
            if (fetch && c % line == 0) _mm_prefetch((const char *)w + (size_t)p * a->panel_bytes + FLOAT_PREFETCH_BYTES, _MM_HINT_T0);
        }
        QN_UNROLL
        for (int32_t t = 0; t < T; t++) {
            const __m512 y = _mm512_set1_ps(*(const float *)qn_rows14_at(&x, t));
            QN_UNROLL
            for (int32_t p = 0; p < P; p++) {
                acc[t * P + p] = _mm512_fmadd_ps(v[p], y, acc[t * P + p]);
                QN_IN_ORDER16(acc[t * P + p]);
            }
        }
        qn_rows14_step(&x, 4);
    }
    QN_UNROLL
    for (int32_t t = 0; t < T; t++)
        QN_UNROLL
        for (int32_t p = 0; p < P; p++) qn_store16(out + t * a->out_stride + QN_PANEL * p, rows - QN_PANEL * p, acc[t * P + p]);
}

/* All tokens over P panels, so that these are read from memory once. */
QN_INLINE void qn_float_panels(const qn_matmul_args *a, const float_format *f, int64_t i, const int32_t P)
{
    int32_t t = 0;
    for (; t + FLOAT_TILE <= a->n_tokens; t += FLOAT_TILE) qn_float_tile(a, f, i, t, FLOAT_TILE, P, false);
    for (; t + 6 <= a->n_tokens; t += 6) qn_float_tile(a, f, i, t, 6, P, false);
    for (; t + 3 <= a->n_tokens; t += 3) qn_float_tile(a, f, i, t, 3, P, true);
    for (; t < a->n_tokens; t++) qn_float_tile(a, f, i, t, 1, P, true);
}

/* T tokens, all of the call, over P panels at a time: the weights go by once, and their products hide behind their way from memory. */
QN_INLINE void qn_float_few(const qn_matmul_args *a, const float_format *f, const int32_t T, const int32_t P)
{
    int64_t i = 0;
    for (; i + P <= a->n_panels; i += P) qn_float_tile(a, f, i, 0, T, P, true);
    for (; i < a->n_panels; i++) qn_float_tile(a, f, i, 0, T, 1, true);
}

/** `run` of a row: f must be a constant. */
QN_INLINE void qn_matmul_float_avx512(const qn_matmul_args *a, const float_format *f)
{
    switch (a->n_tokens) { /* T times P sums: 24 registers at most */
    case 1: qn_float_few(a, f, 1, 4); return;
    case 2: qn_float_few(a, f, 2, 4); return;
    case 3: qn_float_few(a, f, 3, 4); return;
    case 4: qn_float_few(a, f, 4, 4); return;
    case 5: qn_float_few(a, f, 5, 4); return;
    case 6: qn_float_few(a, f, 6, 4); return;
    case 7: qn_float_few(a, f, 7, 3); return;
    case 8: qn_float_few(a, f, 8, 3); return;
    case 9: qn_float_few(a, f, 9, 2); return;
    default: break;
    }
    int64_t i = 0;
    for (; i + 2 <= a->n_panels; i += 2) qn_float_panels(a, f, i, 2);
    if (i < a->n_panels) qn_float_panels(a, f, i, 1);
}

#endif

/**
 * Products of float panels, [column][16 rows], with float32 activations: one chain of fma per output. What hides its latency is several panels
 * at once (few tokens) or several tokens (many): at least 8 chains of 8 rows.
 */
#ifndef QN_SIMD_MATMUL_FLOAT_AVX2_H
#define QN_SIMD_MATMUL_FLOAT_AVX2_H

#include "simd/avx2/avx2.h"

typedef struct float_format {
    __m256 (*load8)(const uint8_t *w); /* 8 weights as float32 */
    int32_t bytes;                     /* of a weight          */
} float_format;

/* T tokens and P neighbouring panels over n columns; `more`: adds to what is in out. Panels are whole but for the last row count. */
QN_INLINE void qn_float_tile(const float_format *f, const uint8_t *w, size_t panel_bytes, int64_t n, const float *x, int64_t x_stride, float *out,
                             int64_t out_stride, int64_t rows, bool more, const int32_t T, const int32_t P)
{
    __m256 acc[16];
    QN_UNROLL
    for (int32_t t = 0; t < T; t++)
        QN_UNROLL
        for (int32_t i = 0; i < 2 * P; i++)
            acc[t * 2 * P + i] = more && rows > 8 * i ? qn_load8(out + t * out_stride + 8 * i, rows - 8 * i) : _mm256_setzero_ps();
    const int64_t line = 64 / (QN_PANEL * f->bytes); /* columns in a cache line: 1 or 2 */
    const float *row[6];
    QN_UNROLL
    for (int32_t t = 0; t < T; t++) row[t] = x + t * x_stride;
    for (int64_t c = 0; c < n; c++, w += QN_PANEL * f->bytes) {
        __m256 v[8];
        QN_UNROLL
        for (int32_t i = 0; i < 2 * P; i++) v[i] = f->load8(w + (size_t)(i / 2) * panel_bytes + (size_t)(i % 2 * 8 * f->bytes));
        for (int32_t i = 0; T < 5 && c % line == 0 && i < P; i++) _mm_prefetch((const char *)w + (size_t)i * panel_bytes + 1536, _MM_HINT_T0);
        QN_UNROLL
        for (int32_t t = 0; t < T; t++) {
            const __m256 y = _mm256_broadcast_ss(row[t] + c);
            QN_UNROLL
            for (int32_t i = 0; i < 2 * P; i++) {
                acc[t * 2 * P + i] = _mm256_fmadd_ps(v[i], y, acc[t * 2 * P + i]);
                if (T > 1) QN_IN_ORDER(acc[t * 2 * P + i]);
            }
        }
    }
    QN_UNROLL
    for (int32_t t = 0; t < T; t++)
        QN_UNROLL
        for (int32_t i = 0; i < 2 * P; i++)
            if (rows > 8 * i) qn_store8(out + t * out_stride + 8 * i, rows - 8 * i, acc[t * 2 * P + i]);
}

/* All panels of a call for the T tokens from t0. */
QN_INLINE void qn_float_tokens(const qn_matmul_args *a, const float_format *f, int32_t t0, const int32_t T, const int32_t P)
{
    const float *x = a->act.x + t0 * a->act.x_stride;
    float *out = a->out + t0 * a->out_stride;
    int64_t i = 0;
    for (; i + P <= a->n_panels; i += P)
        qn_float_tile(f, a->w + (size_t)i * a->panel_bytes, a->panel_bytes, a->n_cols, x, a->act.x_stride, out + QN_PANEL * i, a->out_stride,
                      a->n_rows - QN_PANEL * i, false, T, P);
    for (; i < a->n_panels; i++)
        qn_float_tile(f, a->w + (size_t)i * a->panel_bytes, a->panel_bytes, a->n_cols, x, a->act.x_stride, out + QN_PANEL * i, a->out_stride,
                      a->n_rows - QN_PANEL * i, false, T, 1);
}

/* One panel for all tokens, so that it is read from memory once. */
QN_INLINE void qn_float_panel(const qn_matmul_args *a, const float_format *f, const uint8_t *w, int64_t n_cols, const float *x, float *out, int64_t rows,
                              bool more)
{
    int32_t t = 0;
    for (; t + 6 <= a->n_tokens; t += 6)
        qn_float_tile(f, w, 0, n_cols, x + t * a->act.x_stride, a->act.x_stride, out + t * a->out_stride, a->out_stride, rows, more, 6, 1);
    for (; t + 4 <= a->n_tokens; t += 4)
        qn_float_tile(f, w, 0, n_cols, x + t * a->act.x_stride, a->act.x_stride, out + t * a->out_stride, a->out_stride, rows, more, 4, 1);
    for (; t < a->n_tokens; t++)
        qn_float_tile(f, w, 0, n_cols, x + t * a->act.x_stride, a->act.x_stride, out + t * a->out_stride, a->out_stride, rows, more, 1, 1);
}

/** `run` of a row: f must be a constant. */
QN_INLINE void qn_matmul_float_avx2(const qn_matmul_args *a, const float_format *f)
{
    switch (a->n_tokens) {
    case 1: qn_float_tokens(a, f, 0, 1, 4); return;
    case 2: qn_float_tokens(a, f, 0, 2, 2); return;
    case 3: qn_float_tokens(a, f, 0, 3, 2); return;
    }
    for (int64_t i = 0; i < a->n_panels; i++)
        qn_float_panel(a, f, a->w + (size_t)i * a->panel_bytes, a->n_cols, a->act.x, a->out + QN_PANEL * i, a->n_rows - QN_PANEL * i, false);
}

#endif

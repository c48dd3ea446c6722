/**
 * Products of float panels, [column][16 rows], with float32 activations: one chain of fma per output. What hides its latency is several panels
 * at once (few tokens) or several tokens (many): 16 chains of 4 rows. Formats without kernels are decoded in pieces into such panels.
 */
#include "simd/neon/neon.h"

enum { TILE = 4, PIECE = 512 }; /* tokens; columns, a multiple of every block: decoded and turned they fill the scratch memory */
_Static_assert(2 * QN_PANEL * PIECE <= QN_MATMUL_SCRATCH, "two pieces");

typedef struct float_format {
    void (*load16)(const uint8_t *w, float32x4_t *v); /* a column of 16 rows */
    int32_t bytes;                                    /* of a weight         */
} float_format;

QN_INLINE void load16_f32(const uint8_t *w, float32x4_t *v)
{
    QN_UNROLL
    for (int32_t i = 0; i < 4; i++) v[i] = vld1q_f32((const float *)w + 4 * i);
}

QN_INLINE void load16_f16(const uint8_t *w, float32x4_t *v)
{
    QN_UNROLL
    for (int32_t i = 0; i < 2; i++) {
        const float16x8_t h = vreinterpretq_f16_u16(vld1q_u16((const uint16_t *)w + 8 * i));
        v[2 * i] = vcvt_f32_f16(vget_low_f16(h));
        v[2 * i + 1] = vcvt_high_f32_f16(h);
    }
}

QN_INLINE void load16_bf16(const uint8_t *w, float32x4_t *v)
{
    QN_UNROLL
    for (int32_t i = 0; i < 2; i++) {
        const uint16x8_t h = vld1q_u16((const uint16_t *)w + 8 * i);
        v[2 * i] = vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(h), 16));
        v[2 * i + 1] = vreinterpretq_f32_u32(vshll_high_n_u16(h, 16));
    }
}

static const float_format f32 = { load16_f32, 4 }, f16 = { load16_f16, 2 }, bf16 = { load16_bf16, 2 };

QN_INLINE void store_rows(float *out, int64_t rows, const float32x4_t *v)
{
    for (int32_t i = 0; i < 4 && rows > 4 * i; i++) qn_store4(out + 4 * i, rows - 4 * i, v[i]);
}

/* T tokens and P neighbouring panels over n columns; `more`: adds to what is in out. Panels are whole but for the last row count. */
QN_INLINE void tile_run(const float_format *f, const uint8_t *w, size_t panel_bytes, int64_t n, const float *x, int64_t x_stride, float *out,
                        int64_t out_stride, int64_t rows, bool more, const int32_t T, const int32_t P)
{
    float32x4_t acc[16];
    const float *row[TILE];
    QN_UNROLL
    for (int32_t t = 0; t < T; t++) {
        row[t] = x + t * x_stride;
        QN_UNROLL
        for (int32_t i = 0; i < 4 * P; i++)
            acc[t * 4 * P + i] = more && rows > 4 * i ? qn_load4(out + t * out_stride + 4 * i, rows - 4 * i) : vdupq_n_f32(0);
    }
    for (int64_t c = 0; c < n; c++, w += QN_PANEL * f->bytes) {
        QN_UNROLL
        for (int32_t p = 0; p < P; p++) {
            float32x4_t v[4];
            f->load16(w + (size_t)p * panel_bytes, v);
            if (T == 1) __builtin_prefetch(w + (size_t)p * panel_bytes + 1536);
            QN_UNROLL
            for (int32_t t = 0; t < T; t++)
                QN_UNROLL
                for (int32_t i = 0; i < 4; i++) acc[(t * P + p) * 4 + i] = vfmaq_n_f32(acc[(t * P + p) * 4 + i], v[i], row[t][c]);
        }
    }
    QN_UNROLL
    for (int32_t t = 0; t < T; t++)
        QN_UNROLL
        for (int32_t p = 0; p < P; p++) store_rows(out + t * out_stride + QN_PANEL * p, rows - QN_PANEL * p, acc + (t * P + p) * 4);
}

/* One panel for all tokens, so that it is read from memory once. */
QN_INLINE void panel_run(const qn_matmul_args *a, const float_format *f, const uint8_t *w, int64_t n, const float *x, float *out, int64_t rows,
                         bool more)
{
    int32_t t = 0;
    for (; t + TILE <= a->n_tokens; t += TILE)
        tile_run(f, w, 0, n, x + t * a->act.x_stride, a->act.x_stride, out + t * a->out_stride, a->out_stride, rows, more, TILE, 1);
    for (; t < a->n_tokens; t++)
        tile_run(f, w, 0, n, x + t * a->act.x_stride, a->act.x_stride, out + t * a->out_stride, a->out_stride, rows, more, 1, 1);
}

QN_INLINE void matmul(const qn_matmul_args *a, const float_format *f)
{
    const int64_t step = a->n_tokens == 1 ? 4 : a->n_tokens == 2 ? 2 : 1;
    int64_t i = 0;
    for (; step > 1 && i + step <= a->n_panels; i += step) {
        const uint8_t *w = a->w + (size_t)i * a->panel_bytes;
        float *out = a->out + QN_PANEL * i;
        const int64_t rows = a->n_rows - QN_PANEL * i;
        if (step == 4) tile_run(f, w, a->panel_bytes, a->n_cols, a->act.x, 0, out, 0, rows, false, 1, 4);
        else tile_run(f, w, a->panel_bytes, a->n_cols, a->act.x, a->act.x_stride, out, a->out_stride, rows, false, 2, 2);
    }
    for (; i < a->n_panels; i++)
        panel_run(a, f, a->w + (size_t)i * a->panel_bytes, a->n_cols, a->act.x, a->out + QN_PANEL * i, a->n_rows - QN_PANEL * i, false);
}

static void matmul_f32(const qn_matmul_args *a)
{
    matmul(a, &f32);
}

static void matmul_f16(const qn_matmul_args *a)
{
    matmul(a, &f16);
}

static void matmul_bf16(const qn_matmul_args *a)
{
    matmul(a, &bf16);
}

/* n columns of 16 rows, as rows, into [column][16]. */
static void turn(const float *rows, int64_t n, float *panel)
{
    int64_t c = 0;
    for (; c + 4 <= n; c += 4) {
        for (int32_t r = 0; r < QN_PANEL; r += 4) {
            const float *at = rows + r * n + c;
            const float32x4_t a = vld1q_f32(at), b = vld1q_f32(at + n), d = vld1q_f32(at + 2 * n), e = vld1q_f32(at + 3 * n);
            const float64x2_t ab0 = vreinterpretq_f64_f32(vtrn1q_f32(a, b)), ab1 = vreinterpretq_f64_f32(vtrn2q_f32(a, b));
            const float64x2_t de0 = vreinterpretq_f64_f32(vtrn1q_f32(d, e)), de1 = vreinterpretq_f64_f32(vtrn2q_f32(d, e));
            float *out = panel + c * QN_PANEL + r;
            vst1q_f32(out, vreinterpretq_f32_f64(vtrn1q_f64(ab0, de0)));
            vst1q_f32(out + QN_PANEL, vreinterpretq_f32_f64(vtrn1q_f64(ab1, de1)));
            vst1q_f32(out + 2 * QN_PANEL, vreinterpretq_f32_f64(vtrn2q_f64(ab0, de0)));
            vst1q_f32(out + 3 * QN_PANEL, vreinterpretq_f32_f64(vtrn2q_f64(ab1, de1)));
        }
    }
    for (; c < n; c++)
        for (int32_t r = 0; r < QN_PANEL; r++) panel[c * QN_PANEL + r] = rows[r * n + c];
}

static void fallback(const qn_matmul_args *a)
{
    const qn_fmt *fmt = a->fmt;
    const size_t row_bytes = (size_t)(a->n_cols / fmt->block) * (size_t)fmt->bytes;
    float *rows = a->scratch, *panel = a->scratch + QN_PANEL * PIECE;
    for (int64_t i = 0; i < a->n_panels; i++) {
        const int64_t left = a->n_rows - QN_PANEL * i, n_rows = left < QN_PANEL ? left : QN_PANEL;
        for (int64_t c = 0; c < a->n_cols; c += PIECE) {
            const int64_t n = a->n_cols - c < PIECE ? a->n_cols - c : PIECE;
            const uint8_t *w = a->w + (size_t)i * a->panel_bytes + (size_t)(c / fmt->block) * (size_t)fmt->bytes;
            for (int64_t r = 0; r < n_rows; r++) fmt->decode(w + (size_t)r * row_bytes, n / fmt->block, rows + r * n);
            for (int64_t at = n_rows * n; at < QN_PANEL * n; at++) rows[at] = 0;
            turn(rows, n, panel);
            panel_run(a, &f32, (const uint8_t *)panel, n, a->act.x + c, a->out + QN_PANEL * i, left, c > 0);
        }
    }
}

void qn_rows_init_float_neon(qn_kernels *k)
{
    for (int32_t id = 0; id < QN_MAX_FMT_ID; id++) {
        k->matmul[id].isa = "neon";
        k->matmul[id].run = fallback;
    }
    qn_run_set(k, "F32", "neon", matmul_f32);
    qn_run_set(k, "F16", "neon", matmul_f16);
    qn_run_set(k, "BF16", "neon", matmul_bf16);
}

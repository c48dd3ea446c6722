/* Products of quantised weights with A16 or A8 activations, for any format that can read a block. */
#include "simd/scalar/scalar.h"

#include <math.h>

static int32_t dot(const int16_t *w, const int16_t *q, int32_t n)
{
    int32_t sum = 0; /* at most 32 * 255 * 32639 < 2^31 */
    for (int32_t i = 0; i < n; i++) sum += w[i] * q[i];
    return sum;
}

static float half_add(const qn_block *w, int32_t half, const int16_t *q, float d, float acc)
{
    int32_t sum = 0;
    acc = fmaf(w->d[half] * d, (float)dot(w->q + 16 * half, q + 16 * half, 16), acc);
    for (int32_t i = 0; i < 16; i++) sum += q[16 * half + i];
    return w->min ? fmaf(w->m[half], d * (float)sum, acc) : acc;
}

static float block_add(const qn_block *w, const int16_t *q, float d, float s, float acc)
{
    if (w->halves) return half_add(w, 1, q, d, half_add(w, 0, q, d, acc));
    acc = fmaf(w->d[0] * d, (float)dot(w->q, q, 32), acc);
    return w->min ? fmaf(w->m[0], s, acc) : acc;
}

void qn_matmul_a16_scalar(const qn_matmul_args *a, qn_block_fn read)
{
    const int64_t n_blocks = a->n_cols / QN_ACT_BLOCK, d_stride = a->act.q_stride / QN_ACT_BLOCK;
    for (int64_t row = 0; row < a->n_rows; row++) {
        const uint8_t *panel = a->w + (size_t)(row / QN_PANEL) * a->panel_bytes;
        for (int32_t t = 0; t < a->n_tokens; t++) a->out[t * a->out_stride + row] = 0;
        for (int64_t b = 0; b < n_blocks; b++) {
            qn_block w;
            read(panel, (int32_t)(row % QN_PANEL), b, &w);
            for (int32_t t = 0; t < a->n_tokens; t++) {
                float *acc = &a->out[t * a->out_stride + row];
                const int64_t i = t * d_stride + b;
                *acc = block_add(&w, a->act.q + t * a->act.q_stride + b * QN_ACT_BLOCK, a->act.d[i], a->act.s[i], *acc);
            }
        }
    }
}

/* The block's 8-bit activations in the order of its columns, as 16-bit numbers. */
static void widen(const int8_t *q8, int16_t *q)
{
    static const int8_t order[8] = QN_A8_ORDER;
    for (int32_t i = 0; i < QN_ACT_BLOCK; i++) q[i / 8 * 8 + order[i % 8]] = q8[i];
}

void qn_matmul_a8_scalar(const qn_matmul_args *a, qn_block_fn read)
{
    const int64_t n_blocks = a->n_cols / QN_ACT_BLOCK, d_stride = a->act.q_stride / QN_ACT_BLOCK;
    for (int64_t row = 0; row < a->n_rows; row++) {
        const uint8_t *panel = a->w + (size_t)(row / QN_PANEL) * a->panel_bytes;
        for (int32_t t = 0; t < a->n_tokens; t++) a->out[t * a->out_stride + row] = 0;
        for (int64_t b = 0; b < n_blocks; b++) {
            qn_block w;
            read(panel, (int32_t)(row % QN_PANEL), b, &w);
            for (int32_t t = 0; t < a->n_tokens; t++) {
                float *acc = &a->out[t * a->out_stride + row];
                const int64_t i = t * d_stride + b;
                int16_t q[QN_ACT_BLOCK];
                widen(a->act.q8 + t * a->act.q_stride + b * QN_ACT_BLOCK, q);
                *acc = block_add(&w, q, a->act.d[i], a->act.s[i], *acc);
            }
        }
    }
}

void qn_unpack_a16_scalar(const uint8_t *panel, int32_t r, int64_t n_cols, float *out, qn_block_fn read)
{
    for (int64_t b = 0; b < n_cols / QN_ACT_BLOCK; b++) {
        qn_block w;
        read(panel, r, b, &w);
        for (int32_t i = 0; i < QN_ACT_BLOCK; i++) {
            const float v = w.d[i / 16] * (float)w.q[i];
            out[b * QN_ACT_BLOCK + i] = w.min ? v + w.m[i / 16] : v;
        }
    }
}

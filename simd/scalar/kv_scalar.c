/* The formats of the KV cache, as simd/kernels.h defines them. */
#include "simd/scalar/scalar.h"

#include <math.h>

/* ---- F32, F16, BF16 ---- */

static void f32_encode(const float *x, int32_t dim, void *codes, uint16_t *scales)
{
    (void)scales;
    memcpy(codes, x, (size_t)dim * sizeof *x);
}

static void f32_load(const void *block, int32_t dim, float *out)
{
    memcpy(out, block, (size_t)dim * QN_KV_BLOCK * sizeof *out);
}

static void f16_encode(const float *x, int32_t dim, void *codes, uint16_t *scales)
{
    uint16_t *out = codes;
    (void)scales;
    for (int32_t d = 0; d < dim; d++) out[d] = qn_f16_from_f32(x[d]);
}

static void f16_load(const void *block, int32_t dim, float *out)
{
    const uint16_t *h = block;
    for (int32_t i = 0; i < dim * QN_KV_BLOCK; i++) out[i] = qn_f32_from_f16(h[i]);
}

static void bf16_encode(const float *x, int32_t dim, void *codes, uint16_t *scales)
{
    uint16_t *out = codes;
    (void)scales;
    for (int32_t d = 0; d < dim; d++) out[d] = qn_bf16_from_f32(x[d]);
}

static void bf16_load(const void *block, int32_t dim, float *out)
{
    const uint16_t *h = block;
    for (int32_t i = 0; i < dim * QN_KV_BLOCK; i++) out[i] = qn_f32_from_bf16(h[i]);
}

/* ---- Q8_0, Q4_0 ---- */

enum { GROUP = 32, NOT_A_SCALE = 0x7e00 };

/* The value furthest from 0, the negative one of two; NaN where an Inf or NaN is among them. */
static float extreme_of(const float *x, int32_t n)
{
    float lo = 0, hi = 0;
    for (int32_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) return NAN;
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
    }
    return -lo >= hi ? lo : hi;
}

/* d as it is kept. @param inverse out: what values are multiplied by */
static uint16_t scale_of(float d, float *inverse)
{
    const uint16_t h = qn_f16_from_f32(d);
    const float kept = qn_f32_from_f16(h);
    *inverse = kept != 0 ? 1.0f / kept : 0;
    return isfinite(kept) ? h : NOT_A_SCALE;
}

static int32_t code_of(float x, float inverse, int32_t lo, int32_t hi)
{
    const int32_t q = (int32_t)(x * inverse + 0x1.8p23f - 0x1.8p23f); /* to nearest even; below 256, however small d is */
    return q < lo ? lo : q > hi ? hi : q;
}

static void q8_0_encode(const float *x, int32_t dim, void *codes, uint16_t *scales)
{
    int8_t *out = codes;
    for (int32_t from = 0; from < dim; from += GROUP) {
        const int32_t n = dim - from < GROUP ? dim - from : GROUP;
        float inverse;
        const uint16_t h = *scales++ = scale_of(fabsf(extreme_of(x + from, n)) / QN_A8_MAX, &inverse);
        for (int32_t d = from; d < from + n; d++) out[d] = h == NOT_A_SCALE ? 0 : (int8_t)code_of(x[d], inverse, -127, 127);
    }
}

static void q4_0_encode(const float *x, int32_t dim, void *codes, uint16_t *scales)
{
    uint8_t *out = codes;
    for (int32_t from = 0; from < dim; from += GROUP) {
        const int32_t n = dim - from < GROUP ? dim - from : GROUP;
        float inverse;
        const uint16_t h = *scales++ = scale_of(extreme_of(x + from, n) / -8.0f, &inverse);
        for (int32_t d = from; d < from + n; d += 2) {
            const int32_t even = code_of(x[d], inverse, -8, 7) + 8, odd = code_of(x[d + 1], inverse, -8, 7) + 8;
            out[d / 2] = h == NOT_A_SCALE ? 0 : (uint8_t)(even | odd << 4);
        }
    }
}

static const uint8_t *codes_of(const void *block, int32_t dim)
{
    return (const uint8_t *)block + (dim + GROUP - 1) / GROUP * QN_KV_BLOCK * (int32_t)sizeof(uint16_t);
}

static float scale_at(const void *block, int32_t d, int32_t slot)
{
    return qn_f32_from_f16(((const uint16_t *)block)[d / GROUP * QN_KV_BLOCK + slot]);
}

static void q8_0_load_k(const void *block, int32_t dim, float *out)
{
    const int8_t *q = (const int8_t *)codes_of(block, dim);
    for (int32_t d = 0; d < dim; d++)
        for (int32_t slot = 0; slot < QN_KV_BLOCK; slot++) *out++ = scale_at(block, d, slot) * (float)*q++;
}

static void q8_0_load_v(const void *block, int32_t dim, float *out)
{
    const int8_t *q = (const int8_t *)codes_of(block, dim);
    for (int32_t slot = 0; slot < QN_KV_BLOCK; slot++)
        for (int32_t d = 0; d < dim; d++) *out++ = scale_at(block, d, slot) * (float)*q++;
}

static void q4_0_load_k(const void *block, int32_t dim, float *out)
{
    const uint8_t *q = codes_of(block, dim);
    for (int32_t d = 0; d < dim; d++)
        for (int32_t slot = 0; slot < QN_KV_BLOCK; slot++)
            *out++ = scale_at(block, d, slot) * (float)((q[d / 2 * QN_KV_BLOCK + slot] >> d % 2 * 4 & 15) - 8);
}

static void q4_0_load_v(const void *block, int32_t dim, float *out)
{
    const uint8_t *q = codes_of(block, dim);
    for (int32_t slot = 0; slot < QN_KV_BLOCK; slot++, q += dim / 2)
        for (int32_t d = 0; d < dim; d++) *out++ = scale_at(block, d, slot) * (float)((q[d / 2] >> d % 2 * 4 & 15) - 8);
}

/* ---- the table ---- */

static void row_set(qn_kernels *k, const char *fmt_name, const qn_kv_row *row)
{
    const qn_fmt *fmt = qn_fmt_by_name(fmt_name);
    if (fmt) k->kv[fmt->id] = *row;
}

void qn_rows_init_kv_scalar(qn_kernels *k)
{
    row_set(k, "F32", &(qn_kv_row){ QN_KV_F32, 32, 0, f32_encode, f32_load, f32_load });
    row_set(k, "F16", &(qn_kv_row){ QN_KV_F16, 16, 0, f16_encode, f16_load, f16_load });
    row_set(k, "BF16", &(qn_kv_row){ QN_KV_CODED, 16, 0, bf16_encode, bf16_load, bf16_load });
    row_set(k, "Q8_0", &(qn_kv_row){ QN_KV_CODED, 8, GROUP, q8_0_encode, q8_0_load_k, q8_0_load_v });
    row_set(k, "Q4_0", &(qn_kv_row){ QN_KV_CODED, 4, GROUP, q4_0_encode, q4_0_load_k, q4_0_load_v });
}

/* The formats of the KV cache. Rows are a multiple of 8 long. */
#include "simd/neon/neon.h"

#include <string.h>

/* ---- F16, BF16 ---- */

static void f16_encode(const float *x, int32_t dim, void *codes, uint16_t *scales)
{
    uint16_t *out = codes;
    (void)scales;
    for (int32_t d = 0; d < dim; d += 4) vst1_u16(out + d, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(x + d))));
}

static void f16_load(const void *block, int32_t dim, float *out)
{
    const uint16_t *h = block;
    for (int32_t i = 0; i < dim * QN_KV_BLOCK; i += 4) vst1q_f32(out + i, qn_load4_f16(h + i));
}

/* To nearest even, or quiet. */
static void bf16_encode(const float *x, int32_t dim, void *codes, uint16_t *scales)
{
    uint16_t *out = codes;
    (void)scales;
    for (int32_t d = 0; d < dim; d += 4) {
        const float32x4_t v = vld1q_f32(x + d);
        const uint32x4_t u = vreinterpretq_u32_f32(v), even = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
        const uint32x4_t rounded = vaddq_u32(vaddq_u32(u, vdupq_n_u32(0x7fff)), even), quiet = vorrq_u32(u, vdupq_n_u32(0x400000));
        vst1_u16(out + d, vshrn_n_u32(vbslq_u32(vceqq_f32(v, v), rounded, quiet), 16));
    }
}

static void bf16_load(const void *block, int32_t dim, float *out)
{
    const uint16_t *h = block;
    for (int32_t i = 0; i < dim * QN_KV_BLOCK; i += 4) vst1q_f32(out + i, vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(h + i), 16)));
}

/* ---- Q8_0, Q4_0: codes ---- */

enum { GROUP = QN_ACT_BLOCK, NOT_A_SCALE = 0x7e00 };

/* n <= 32 values, a multiple of 8, then zeros. */
QN_INLINE void load_group(const float *x, int32_t n, float32x4_t *out)
{
    for (int32_t j = 0; j < 8; j++) out[j] = 4 * j < n ? vld1q_f32(x + 4 * j) : vdupq_n_f32(0);
}

/* The largest and the smallest value, 0 at least and at most. @return false where an Inf or NaN is among them */
QN_INLINE bool extremes_of(const float32x4_t *x, float *lo, float *hi)
{
    float32x4_t least = vdupq_n_f32(0), most = least, size = least;
    for (int32_t j = 0; j < 8; j++) {
        least = vminq_f32(x[j], least);
        most = vmaxq_f32(x[j], most);
        size = vreinterpretq_f32_u32(vmaxq_u32(vreinterpretq_u32_f32(vabsq_f32(x[j])), vreinterpretq_u32_f32(size)));
    }
    *lo = vminvq_f32(least) + 0.0f; /* never -0 */
    *hi = vmaxvq_f32(most);
    return vmaxvq_u32(vreinterpretq_u32_f32(size)) < 0x7f800000;
}

/* d as it is kept. @param inverse out: what values are multiplied by */
QN_INLINE uint16_t scale_of(float d, float *inverse)
{
    const float16x4_t half = vcvt_f16_f32(vdupq_n_f32(d));
    const uint16_t h = vget_lane_u16(vreinterpret_u16_f16(half), 0);
    const float kept = vgetq_lane_f32(vcvt_f32_f16(half), 0);
    *inverse = kept != 0 ? 1.0f / kept : 0;
    return (h & 0x7c00) == 0x7c00 ? NOT_A_SCALE : h;
}

/* 16 codes as bytes, in order. */
QN_INLINE int8x16_t codes_of(const float32x4_t *x, float inverse)
{
    int32x4_t q[4];
    for (int32_t j = 0; j < 4; j++) q[j] = vcvtnq_s32_f32(vmulq_n_f32(x[j], inverse));
    const int16x8_t lo = vcombine_s16(vmovn_s32(q[0]), vmovn_s32(q[1])), hi = vcombine_s16(vmovn_s32(q[2]), vmovn_s32(q[3]));
    return vcombine_s8(vqmovn_s16(lo), vqmovn_s16(hi));
}

static void q8_0_encode(const float *x, int32_t dim, void *codes, uint16_t *scales)
{
    for (int32_t from = 0; from < dim; from += GROUP) {
        const int32_t n = dim - from < GROUP ? dim - from : GROUP;
        float32x4_t v[8];
        int8_t q[GROUP] = { 0 };
        float lo, hi, inverse;
        load_group(x + from, n, v);
        const bool sound = extremes_of(v, &lo, &hi);
        const uint16_t h = *scales++ = sound ? scale_of((-lo > hi ? -lo : hi) / QN_A8_MAX, &inverse) : NOT_A_SCALE;
        for (int32_t j = 0; j < 2 && h != NOT_A_SCALE; j++) vst1q_s8(q + 16 * j, vmaxq_s8(codes_of(v + 4 * j, inverse), vdupq_n_s8(-127)));
        memcpy((int8_t *)codes + from, q, (size_t)n);
    }
}

static void q4_0_encode(const float *x, int32_t dim, void *codes, uint16_t *scales)
{
    for (int32_t from = 0; from < dim; from += GROUP) {
        const int32_t n = dim - from < GROUP ? dim - from : GROUP;
        float32x4_t v[8];
        uint8_t pairs[GROUP / 2] = { 0 };
        float lo, hi, inverse;
        load_group(x + from, n, v);
        const bool sound = extremes_of(v, &lo, &hi);
        const uint16_t h = *scales++ = sound ? scale_of((-lo >= hi ? lo : hi) / -8.0f, &inverse) : NOT_A_SCALE;
        for (int32_t j = 0; j < 2 && h != NOT_A_SCALE; j++) {
            const int8x16_t q = vminq_s8(vmaxq_s8(codes_of(v + 4 * j, inverse), vdupq_n_s8(-8)), vdupq_n_s8(7));
            const uint16x8_t code = vreinterpretq_u16_s8(vaddq_s8(q, vdupq_n_s8(8))); /* even below, odd above */
            vst1_u8(pairs + 8 * j, vmovn_u16(vorrq_u16(code, vshrq_n_u16(code, 4))));
        }
        memcpy((uint8_t *)codes + from / 2, pairs, (size_t)n / 2);
    }
}

/* ---- Q8_0, Q4_0: values ---- */

QN_INLINE int32_t n_scales(int32_t dim)
{
    return (dim + GROUP - 1) / GROUP * QN_KV_BLOCK;
}

QN_INLINE const uint8_t *codes_behind(const uint16_t *scale, int32_t dim)
{
    return (const uint8_t *)(scale + n_scales(dim));
}

/* All scales as floats. @param out [n_groups][16] */
QN_INLINE void widen_scales(const uint16_t *scale, int32_t dim, float *out)
{
    for (int32_t i = 0; i < n_scales(dim); i += 4) vst1q_f32(out + i, qn_load4_f16(scale + i));
}

/* out[i] = d[i] * q[i] of 8 codes. */
QN_INLINE void scale8(int8x8_t q, float32x4_t d_lo, float32x4_t d_hi, float *out)
{
    const int16x8_t w = vmovl_s8(q);
    vst1q_f32(out, vmulq_f32(d_lo, vcvtq_f32_s32(vmovl_s16(vget_low_s16(w)))));
    vst1q_f32(out + 4, vmulq_f32(d_hi, vcvtq_f32_s32(vmovl_s16(vget_high_s16(w)))));
}

static void q8_0_load_k(const void *block, int32_t dim, float *out)
{
    const uint16_t *scale = block;
    const uint8_t *q = codes_behind(scale, dim);
    for (int32_t from = 0; from < dim; from += GROUP, scale += QN_KV_BLOCK) {
        const float32x4_t d[4] = { qn_load4_f16(scale), qn_load4_f16(scale + 4), qn_load4_f16(scale + 8), qn_load4_f16(scale + 12) };
        for (int32_t i = from; i < dim && i < from + GROUP; i++, q += QN_KV_BLOCK, out += QN_KV_BLOCK) {
            scale8(vreinterpret_s8_u8(vld1_u8(q)), d[0], d[1], out);
            scale8(vreinterpret_s8_u8(vld1_u8(q + 8)), d[2], d[3], out + 8);
        }
    }
}

static void q8_0_load_v(const void *block, int32_t dim, float *out)
{
    float scale[QN_KV_MAX_DIM / GROUP * QN_KV_BLOCK];
    const uint8_t *q = codes_behind(block, dim);
    widen_scales(block, dim, scale);
    for (int32_t slot = 0; slot < QN_KV_BLOCK; slot++)
        for (int32_t d = 0; d < dim; d += 8, q += 8, out += 8) {
            const float32x4_t s = vdupq_n_f32(scale[d / GROUP * QN_KV_BLOCK + slot]);
            scale8(vreinterpret_s8_u8(vld1_u8(q)), s, s, out);
        }
}

/* The 8 low or high codes of bytes, around 0. */
QN_INLINE int8x8_t centre(uint8x8_t code)
{
    return vsub_s8(vreinterpret_s8_u8(code), vdup_n_s8(8));
}

static void q4_0_load_k(const void *block, int32_t dim, float *out)
{
    const uint16_t *scale = block;
    const uint8_t *q = codes_behind(scale, dim);
    for (int32_t from = 0; from < dim; from += GROUP, scale += QN_KV_BLOCK) {
        const float32x4_t d[4] = { qn_load4_f16(scale), qn_load4_f16(scale + 4), qn_load4_f16(scale + 8), qn_load4_f16(scale + 12) };
        for (int32_t i = from; i < dim && i < from + GROUP; i += 2, q += QN_KV_BLOCK, out += 2 * QN_KV_BLOCK)
            for (int32_t j = 0; j < 2; j++) {
                const uint8x8_t pairs = vld1_u8(q + 8 * j);
                scale8(centre(vand_u8(pairs, vdup_n_u8(15))), d[2 * j], d[2 * j + 1], out + 8 * j);
                scale8(centre(vshr_n_u8(pairs, 4)), d[2 * j], d[2 * j + 1], out + QN_KV_BLOCK + 8 * j);
            }
    }
}

static void q4_0_load_v(const void *block, int32_t dim, float *out)
{
    float scale[QN_KV_MAX_DIM / GROUP * QN_KV_BLOCK];
    const uint8_t *q = codes_behind(block, dim);
    widen_scales(block, dim, scale);
    for (int32_t slot = 0; slot < QN_KV_BLOCK; slot++)
        for (int32_t d = 0; d < dim; d += 8, q += 4, out += 8) {
            uint32_t eight;
            memcpy(&eight, q, 4);
            const uint8x8_t pairs = vreinterpret_u8_u32(vdup_n_u32(eight));
            const uint8x8_t codes = vzip1_u8(vand_u8(pairs, vdup_n_u8(15)), vshr_n_u8(pairs, 4));
            const float32x4_t s = vdupq_n_f32(scale[d / GROUP * QN_KV_BLOCK + slot]);
            scale8(centre(codes), s, s, out);
        }
}

void qn_rows_init_kv_neon(qn_kernels *k)
{
    qn_kernels_kv_set(k, "F16", f16_encode, f16_load, f16_load);
    qn_kernels_kv_set(k, "BF16", bf16_encode, bf16_load, bf16_load);
    qn_kernels_kv_set(k, "Q8_0", q8_0_encode, q8_0_load_k, q8_0_load_v);
    qn_kernels_kv_set(k, "Q4_0", q4_0_encode, q4_0_load_k, q4_0_load_v);
}

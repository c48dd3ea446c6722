/* Lines and planes (simd/panel.h) as the bytes of arm_format: rows 4 quad .. + 3 and columns 8g .. + 7. */
#ifndef QN_SIMD_CODES_NEON_H
#define QN_SIMD_CODES_NEON_H

#include "simd/neon/matmul_a16_neon.h"

QN_INLINE uint8x16_t line_quad(const uint32_t *line, int32_t quad)
{
    return vreinterpretq_u8_u32(vld1q_u32(line + 4 * quad));
}

QN_INLINE uint8x16_t twice(uint16_t two_bytes)
{
    return vreinterpretq_u8_u16(vdupq_n_u16(two_bytes));
}

QN_INLINE arm_bytes bytes_of(uint8x16_t a, uint8x16_t b)
{
    return (arm_bytes){ vreinterpretq_s8_u8(a), vreinterpretq_s8_u8(b) };
}

QN_INLINE arm_bytes less(arm_bytes v, int8_t offset)
{
    return (arm_bytes){ vsubq_s8(v.a, vdupq_n_s8(offset)), vsubq_s8(v.b, vdupq_n_s8(offset)) };
}

/** 4-bit codes. */
QN_INLINE arm_bytes nibbles(const qn_line *q, int32_t quad, int32_t g)
{
    const uint8x16_t v = line_quad(q[g], quad);
    return bytes_of(vandq_u8(v, vdupq_n_u8(15)), vshrq_n_u8(v, 4));
}

/** 16 levels, looked up. */
QN_INLINE arm_bytes looked_up(const qn_line *q, int32_t quad, int32_t g, const int8_t *level)
{
    const arm_bytes code = nibbles(q, quad, g);
    const int8x16_t table = vld1q_s8(level);
    return (arm_bytes){ vqtbl1q_s8(table, vreinterpretq_u8_s8(code.a)), vqtbl1q_s8(table, vreinterpretq_u8_s8(code.b)) };
}

/* Byte g of the 16-bit halves of a plane, twice. */
QN_INLINE uint8x16_t half_byte(uint8x16_t plane, int32_t g)
{
    return g ? vtrn2q_u8(plane, plane) : vtrn1q_u8(plane, plane);
}

/** Nibble minus 16 times the bit of a plane: bits 4 (g % 2) + 0 2 | 1 3 of byte g / 2 belong to columns 0 4 | 2 6 of the group. */
QN_INLINE arm_bytes nibbles_plane1(const qn_line *q, const uint32_t *plane, int32_t quad, int32_t g)
{
    const uint8x16_t v = line_quad(q[g], quad), bits = half_byte(line_quad(plane, quad), g / 2);
    const uint8x16_t a = vtstq_u8(bits, twice(g % 2 ? 0x4010 : 0x0401)), b = vtstq_u8(bits, twice(g % 2 ? 0x8020 : 0x0802));
    return bytes_of(vsliq_n_u8(v, a, 4), vsriq_n_u8(b, v, 4));
}

/** Nibble plus 16 times the bit of the plane. */
QN_INLINE arm_bytes nibbles_and_plane1(const qn_line *q, const uint32_t *plane, int32_t quad, int32_t g)
{
    const arm_bytes v = nibbles_plane1(q, plane, quad, g);
    return (arm_bytes){ vandq_s8(v.a, vdupq_n_s8(31)), vandq_s8(v.b, vdupq_n_s8(31)) };
}

/* Pairs of bits 0-1 4-5 | 2-3 6-7 of byte g % 2 of line g / 2, moved by (left, left - 4) | (left - 2, left - 6). */
QN_INLINE uint8x16_t bit_pairs(const qn_line *plane, int32_t quad, int32_t g, int32_t second, int32_t left)
{
    const int32_t by = second ? left - 2 : left;
    const uint8x16_t bits = half_byte(line_quad(plane[g / 2], quad), g % 2);
    return vshlq_u8(bits, vreinterpretq_s8_u8(twice((uint16_t)((by & 255) | ((by - 4) & 255) << 8))));
}

/** Nibble plus 16 times the two bits of a plane. */
QN_INLINE arm_bytes nibbles_and_plane2(const qn_line *q, const qn_line *plane, int32_t quad, int32_t g)
{
    const uint8x16_t v = line_quad(q[g], quad), six = vdupq_n_u8(63);
    const uint8x16_t a = bit_pairs(plane, quad, g, 0, 4), b = bit_pairs(plane, quad, g, 1, 4);
    return bytes_of(vandq_u8(vbslq_u8(vdupq_n_u8(15), v, a), six), vandq_u8(vsriq_n_u8(b, v, 4), six));
}

/** 2-bit codes. */
QN_INLINE arm_bytes twos(const qn_line *q, int32_t quad, int32_t g)
{
    const uint8x16_t two = vdupq_n_u8(3);
    return bytes_of(vandq_u8(bit_pairs(q, quad, g, 0, 0), two), vandq_u8(bit_pairs(q, quad, g, 1, 0), two));
}

/* Bits 15 of the halves of three lines, as pair 15. */
QN_INLINE uint16x8_t last_three(const qn_line *q, int32_t quad)
{
    const uint16x8_t v0 = vshrq_n_u16(vreinterpretq_u16_u8(line_quad(q[0], quad)), 15);
    const uint16x8_t v1 = vshrq_n_u16(vreinterpretq_u16_u8(line_quad(q[1], quad)), 15);
    const uint16x8_t v2 = vshrq_n_u16(vreinterpretq_u16_u8(line_quad(q[2], quad)), 15);
    return vsliq_n_u16(vsliq_n_u16(v0, v1, 1), v2, 2);
}

/* Pair p of 3-bit codes: 16-bit lanes. */
QN_INLINE uint16x8_t three(const qn_line *q, int32_t quad, int32_t p)
{
    if (p == 15) return last_three(q, quad);
    const uint16x8_t v = vreinterpretq_u16_u8(line_quad(q[p / 5], quad));
    return vandq_u16(v >> (uint16_t)(3 * (p % 5)), vdupq_n_u16(7));
}

/** 3-bit codes. */
QN_INLINE arm_bytes threes(const qn_line *q, int32_t quad, int32_t g)
{
    const uint16x8_t a = vsliq_n_u16(three(q, quad, 4 * g), three(q, quad, 4 * g + 2), 8);
    const uint16x8_t b = vsliq_n_u16(three(q, quad, 4 * g + 1), three(q, quad, 4 * g + 3), 8);
    return bytes_of(vreinterpretq_u8_u16(a), vreinterpretq_u8_u16(b));
}

/** 8-bit codes: lines 2g and 2g + 1 have columns 0 2 1 3 and 4 6 5 7. */
QN_INLINE arm_bytes eights(const qn_line *q, int32_t quad, int32_t g)
{
    const uint8x16_t v = line_quad(q[2 * g], quad), w = line_quad(q[2 * g + 1], quad);
    return bytes_of(vtrn1q_u8(v, w), vtrn2q_u8(v, w));
}

/* ---- scales of 16 rows ---- */

QN_INLINE void halves_scales(const uint16_t *d, float32x4_t *out)
{
    QN_UNROLL
    for (int32_t i = 0; i < 4; i++) out[i] = qn_load4_f16(d + 4 * i);
}

/** d * s, s 16 small integers. */
QN_INLINE void scales_by(const uint16_t *d, int8x16_t s, float32x4_t *out)
{
    const int16x8_t lo = vmovl_s8(vget_low_s8(s)), hi = vmovl_high_s8(s);
    halves_scales(d, out);
    out[0] = vmulq_f32(out[0], vcvtq_f32_s32(vmovl_s16(vget_low_s16(lo))));
    out[1] = vmulq_f32(out[1], vcvtq_f32_s32(vmovl_high_s16(lo)));
    out[2] = vmulq_f32(out[2], vcvtq_f32_s32(vmovl_s16(vget_low_s16(hi))));
    out[3] = vmulq_f32(out[3], vcvtq_f32_s32(vmovl_high_s16(hi)));
}

QN_INLINE void negated(float32x4_t *v)
{
    QN_UNROLL
    for (int32_t i = 0; i < 4; i++) v[i] = vnegq_f32(v[i]);
}

#endif

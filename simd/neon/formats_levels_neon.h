/* Formats whose codes are looked up in a table of 16 levels. */
#ifndef QN_SIMD_FORMATS_LEVELS_NEON_H
#define QN_SIMD_FORMATS_LEVELS_NEON_H

#include "quant/fp4.h"
#include "quant/iq4_levels.h"
#include "simd/neon/codes_neon.h"

#define ARM_FORMATS_LEVELS(X) X(iq4_nl, "IQ4_NL") X(iq4_xs, "IQ4_XS") X(mxfp4, "MXFP4")

QN_INLINE arm_bytes iq4_nl_bytes(const uint8_t *panel, int64_t b, int32_t quad, int32_t g)
{
    return looked_up(((const qn_panel_iq4_nl *)panel)[b / 2].q[b % 2], quad, g, qn_iq4_levels);
}

QN_INLINE void iq4_nl_scales(const uint8_t *panel, int64_t b, int32_t half, float32x4_t *out)
{
    (void)half;
    halves_scales(((const qn_panel_iq4_nl *)panel)[b / 2].d[b % 2], out);
}

QN_INLINE arm_bytes iq4_xs_bytes(const uint8_t *panel, int64_t b, int32_t quad, int32_t g)
{
    return looked_up(((const qn_panel_iq4_xs *)panel)[b / 8].q[b % 8], quad, g, qn_iq4_levels);
}

QN_INLINE void iq4_xs_scales(const uint8_t *panel, int64_t b, int32_t half, float32x4_t *out)
{
    const qn_panel_iq4_xs *p = (const qn_panel_iq4_xs *)panel + b / 8;
    const int8x16_t down_low = vdupq_n_s8((int8_t)-(b % 2 * 4)), down_high = vdupq_n_s8((int8_t)-(b % 4 * 2));
    const uint8x16_t low = vandq_u8(vshlq_u8(vld1q_u8(p->sl[b % 8 / 2]), down_low), vdupq_n_u8(15));
    const uint8x16_t high = vandq_u8(vshlq_u8(vld1q_u8(p->sh[b % 8 / 4]), down_high), vdupq_n_u8(3));
    (void)half;
    scales_by(p->d, vsubq_s8(vreinterpretq_s8_u8(vorrq_u8(low, vshlq_n_u8(high, 4))), vdupq_n_s8(32)), out);
}

QN_INLINE arm_bytes mxfp4_bytes(const uint8_t *panel, int64_t b, int32_t quad, int32_t g)
{
    return looked_up(((const qn_panel_mxfp4 *)panel)[b / 4].q[b % 4], quad, g, qn_fp4_doubles);
}

/* The bits of 2^(e - 128): (e - 1) << 23, but (e + 1) << 21 for the subnormal e = 0 and 1, where it is the larger one. */
QN_INLINE float32x4_t power(uint32x4_t exponent)
{
    const int32x4_t e = vreinterpretq_s32_u32(exponent);
    const int32x4_t normal = vshlq_n_s32(vsubq_s32(e, vdupq_n_s32(1)), 23), subnormal = vshlq_n_s32(vaddq_s32(e, vdupq_n_s32(1)), 21);
    return vreinterpretq_f32_s32(vmaxq_s32(normal, subnormal));
}

QN_INLINE void mxfp4_scales(const uint8_t *panel, int64_t b, int32_t half, float32x4_t *out)
{
    const uint8x16_t e = vld1q_u8(((const qn_panel_mxfp4 *)panel)[b / 4].e[b % 4]);
    const uint16x8_t lo = vmovl_u8(vget_low_u8(e)), hi = vmovl_high_u8(e);
    (void)half;
    out[0] = power(vmovl_u16(vget_low_u16(lo)));
    out[1] = power(vmovl_high_u16(lo));
    out[2] = power(vmovl_u16(vget_low_u16(hi)));
    out[3] = power(vmovl_high_u16(hi));
}

static const arm_format iq4_nl_format = { iq4_nl_bytes, iq4_nl_scales, NULL, 1, sizeof(qn_panel_iq4_nl) / 2 };
static const arm_format iq4_xs_format = { iq4_xs_bytes, iq4_xs_scales, NULL, 1, sizeof(qn_panel_iq4_xs) / 8 };
static const arm_format mxfp4_format = { mxfp4_bytes, mxfp4_scales, NULL, 1, sizeof(qn_panel_mxfp4) / 4 };

#endif

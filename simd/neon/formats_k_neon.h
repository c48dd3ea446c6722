/* Formats in super-blocks of 256 weights. */
#ifndef QN_SIMD_FORMATS_K_NEON_H
#define QN_SIMD_FORMATS_K_NEON_H

#include "simd/neon/codes_neon.h"

#define ARM_FORMATS_K(X) X(q2_k, "Q2_K") X(q3_k, "Q3_K") X(q4_k, "Q4_K") X(q5_k, "Q5_K") X(q6_k, "Q6_K")

/* Q4_K and Q5_K: d * sc[8] and -(dmin * mn[8]), below 64. */
#define SCALES_K4(name)                                                                                             \
    QN_INLINE void name##_scales(const uint8_t *panel, int64_t b, int32_t half, float32x4_t *out)                   \
    {                                                                                                               \
        const qn_panel_##name *p = (const qn_panel_##name *)panel + b / 8;                                          \
        (void)half;                                                                                                 \
        scales_by(p->d, vreinterpretq_s8_u8(vld1q_u8(p->sc[b % 8])), out);                                          \
    }                                                                                                               \
    QN_INLINE void name##_mins(const uint8_t *panel, int64_t b, int32_t half, float32x4_t *out)                     \
    {                                                                                                               \
        const qn_panel_##name *p = (const qn_panel_##name *)panel + b / 8;                                          \
        (void)half;                                                                                                 \
        scales_by(p->dmin, vreinterpretq_s8_u8(vld1q_u8(p->mn[b % 8])), out);                                       \
        negated(out);                                                                                               \
    }
SCALES_K4(q4_k)
SCALES_K4(q5_k)

QN_INLINE arm_bytes q4_k_bytes(const uint8_t *panel, int64_t b, int32_t quad, int32_t g)
{
    return nibbles(((const qn_panel_q4_k *)panel)[b / 8].q[b % 8], quad, g);
}

QN_INLINE arm_bytes q5_k_bytes(const uint8_t *panel, int64_t b, int32_t quad, int32_t g)
{
    const qn_panel_q5_k *p = (const qn_panel_q5_k *)panel + b / 8;
    return nibbles_and_plane1(p->b[b % 8].q, p->b[b % 8].h, quad, g);
}

QN_INLINE arm_bytes q6_k_bytes(const uint8_t *panel, int64_t b, int32_t quad, int32_t g)
{
    const qn_panel_q6_k *p = (const qn_panel_q6_k *)panel + b / 8;
    return less(nibbles_and_plane2(p->b[b % 8].q, p->b[b % 8].h, quad, g), 32);
}

QN_INLINE void q6_k_scales(const uint8_t *panel, int64_t b, int32_t half, float32x4_t *out)
{
    const qn_panel_q6_k *p = (const qn_panel_q6_k *)panel + b / 8;
    scales_by(p->d, vld1q_s8(p->sc[2 * (b % 8) + half]), out);
}

QN_INLINE arm_bytes q2_k_bytes(const uint8_t *panel, int64_t b, int32_t quad, int32_t g)
{
    return twos(((const qn_panel_q2_k *)panel)[b / 8].q[b % 8], quad, g);
}

QN_INLINE void q2_k_scales(const uint8_t *panel, int64_t b, int32_t half, float32x4_t *out)
{
    const qn_panel_q2_k *p = (const qn_panel_q2_k *)panel + b / 8;
    scales_by(p->d, vreinterpretq_s8_u8(vandq_u8(vld1q_u8(p->s[2 * (b % 8) + half]), vdupq_n_u8(15))), out);
}

QN_INLINE void q2_k_mins(const uint8_t *panel, int64_t b, int32_t half, float32x4_t *out)
{
    const qn_panel_q2_k *p = (const qn_panel_q2_k *)panel + b / 8;
    scales_by(p->dmin, vreinterpretq_s8_u8(vshrq_n_u8(vld1q_u8(p->s[2 * (b % 8) + half]), 4)), out);
    negated(out);
}

QN_INLINE arm_bytes q3_k_bytes(const uint8_t *panel, int64_t b, int32_t quad, int32_t g)
{
    return less(threes(((const qn_panel_q3_k *)panel)[b / 8].q[b % 8], quad, g), 4);
}

QN_INLINE void q3_k_scales(const uint8_t *panel, int64_t b, int32_t half, float32x4_t *out)
{
    const qn_panel_q3_k *p = (const qn_panel_q3_k *)panel + b / 8;
    const uint8x16_t sl = vld1q_u8(p->sl[b % 8]), low = half ? vshrq_n_u8(sl, 4) : vandq_u8(sl, vdupq_n_u8(15));
    const int8x16_t down = vdupq_n_s8((int8_t)-(b % 2 * 4 + 2 * half));
    const uint8x16_t high = vandq_u8(vshlq_u8(vld1q_u8(p->sh[b % 8 / 2]), down), vdupq_n_u8(3));
    scales_by(p->d, vsubq_s8(vreinterpretq_s8_u8(vorrq_u8(low, vshlq_n_u8(high, 4))), vdupq_n_s8(32)), out);
}

static const arm_format q2_k_format = { q2_k_bytes, q2_k_scales, q2_k_mins, 2, sizeof(qn_panel_q2_k) / 8 };
static const arm_format q3_k_format = { q3_k_bytes, q3_k_scales, NULL, 2, sizeof(qn_panel_q3_k) / 8 };
static const arm_format q4_k_format = { q4_k_bytes, q4_k_scales, q4_k_mins, 1, sizeof(qn_panel_q4_k) / 8 };
static const arm_format q5_k_format = { q5_k_bytes, q5_k_scales, q5_k_mins, 1, sizeof(qn_panel_q5_k) / 8 };
static const arm_format q6_k_format = { q6_k_bytes, q6_k_scales, NULL, 2, sizeof(qn_panel_q6_k) / 8 };

#endif

/* Formats with one f16 scale for 32 weights. */
#ifndef QN_SIMD_FORMATS_LEGACY_NEON_H
#define QN_SIMD_FORMATS_LEGACY_NEON_H

#include "simd/neon/codes_neon.h"

#define ARM_FORMATS_LEGACY(X) X(q4_0, "Q4_0") X(q4_1, "Q4_1") X(q5_0, "Q5_0") X(q5_1, "Q5_1") X(q8_0, "Q8_0")

/* A unit of two blocks with scales d[2], and one block with d and m. */
#define PAIR_SCALES(name)                                                                                          \
    QN_INLINE void name##_scales(const uint8_t *panel, int64_t b, int32_t half, float32x4_t *out)                  \
    {                                                                                                              \
        (void)half;                                                                                                \
        halves_scales(((const qn_panel_##name *)panel)[b / 2].d[b % 2], out);                                      \
    }
#define BLOCK_SCALES(name, what, member)                                                                           \
    QN_INLINE void name##_##what(const uint8_t *panel, int64_t b, int32_t half, float32x4_t *out)                  \
    {                                                                                                              \
        (void)half;                                                                                                \
        halves_scales(((const qn_panel_##name *)panel)[b].member, out);                                            \
    }
PAIR_SCALES(q4_0)
PAIR_SCALES(q5_0)
PAIR_SCALES(q8_0)
BLOCK_SCALES(q4_1, scales, d)
BLOCK_SCALES(q4_1, mins, m)
BLOCK_SCALES(q5_1, scales, d)
BLOCK_SCALES(q5_1, mins, m)

QN_INLINE arm_bytes q4_0_bytes(const uint8_t *panel, int64_t b, int32_t quad, int32_t g)
{
    return less(nibbles(((const qn_panel_q4_0 *)panel)[b / 2].q[b % 2], quad, g), 8);
}

QN_INLINE arm_bytes q4_1_bytes(const uint8_t *panel, int64_t b, int32_t quad, int32_t g)
{
    return nibbles(((const qn_panel_q4_1 *)panel)[b].q, quad, g);
}

/* The plane holds inverted bits: what it takes away leaves the signed code. */
QN_INLINE arm_bytes q5_0_bytes(const uint8_t *panel, int64_t b, int32_t quad, int32_t g)
{
    const qn_panel_q5_0 *p = (const qn_panel_q5_0 *)panel + b / 2;
    return nibbles_plane1(p->b[b % 2].q, p->b[b % 2].h, quad, g);
}

QN_INLINE arm_bytes q5_1_bytes(const uint8_t *panel, int64_t b, int32_t quad, int32_t g)
{
    const qn_panel_q5_1 *p = (const qn_panel_q5_1 *)panel + b;
    return nibbles_and_plane1(p->q, p->h, quad, g);
}

QN_INLINE arm_bytes q8_0_bytes(const uint8_t *panel, int64_t b, int32_t quad, int32_t g)
{
    return eights(((const qn_panel_q8_0 *)panel)[b / 2].q[b % 2], quad, g);
}

static const arm_format q4_0_format = { q4_0_bytes, q4_0_scales, NULL, 1, sizeof(qn_panel_q4_0) / 2 };
static const arm_format q4_1_format = { q4_1_bytes, q4_1_scales, q4_1_mins, 1, sizeof(qn_panel_q4_1) };
static const arm_format q5_0_format = { q5_0_bytes, q5_0_scales, NULL, 1, sizeof(qn_panel_q5_0) / 2 };
static const arm_format q5_1_format = { q5_1_bytes, q5_1_scales, q5_1_mins, 1, sizeof(qn_panel_q5_1) };
static const arm_format q8_0_format = { q8_0_bytes, q8_0_scales, NULL, 1, sizeof(qn_panel_q8_0) / 2 };

#endif

/* What simd/neon/matmul_a16_neon.h multiplies with at this level: smlal by element, 4 multiply-adds of 16 bits. */
#ifndef QN_SIMD_LEVEL_NEON_H
#define QN_SIMD_LEVEL_NEON_H

#include "simd/neon/neon.h"

#define ARM_LEVEL "neon"

/* Column c of 8 rows, 16 bits each. */
typedef struct arm_weights {
    int16x8_t column[8];
} arm_weights;
typedef int16x8_t arm_input;
typedef struct arm_sums {
    int32x4_t rows[2];
} arm_sums;

QN_INLINE arm_sums arm_zero(void)
{
    return (arm_sums){ { vdupq_n_s32(0), vdupq_n_s32(0) } };
}

QN_INLINE arm_input arm_load(const qn_act *act, int32_t t, int64_t column)
{
    return vld1q_s16(act->q + t * act->q_stride + column);
}

/* Bytes of 4 rows each, (0 4 1 5): the even bytes are columns 0 1 of 8 rows, the odd ones 4 5. */
QN_INLINE void widen(int8x16_t rows03, int8x16_t rows47, int16x8_t *first, int16x8_t *third)
{
    const int16x8_t even = vreinterpretq_s16_s8(vuzp1q_s8(rows03, rows47)), odd = vreinterpretq_s16_s8(vuzp2q_s8(rows03, rows47));
    first[0] = vshrq_n_s16(vshlq_n_s16(even, 8), 8);
    first[1] = vshrq_n_s16(even, 8);
    third[0] = vshrq_n_s16(vshlq_n_s16(odd, 8), 8);
    third[1] = vshrq_n_s16(odd, 8);
}

#define arm_weights_of(p, q) widen_all((p).a, (p).b, (q).a, (q).b)
QN_INLINE arm_weights widen_all(int8x16_t a0, int8x16_t b0, int8x16_t a1, int8x16_t b1)
{
    arm_weights w;
    widen(a0, a1, w.column, w.column + 4);
    widen(b0, b1, w.column + 2, w.column + 6);
    return w;
}

#define ARM_LANE(i)                                                                                       \
    s->rows[0] = vmlal_laneq_s16(s->rows[0], vget_low_s16(w->column[i]), x, i);                           \
    s->rows[1] = vmlal_high_laneq_s16(s->rows[1], w->column[i], x, i)
QN_INLINE void arm_dot(arm_sums *s, const arm_weights *w, arm_input x)
{
    ARM_LANE(0);
    ARM_LANE(1);
    ARM_LANE(2);
    ARM_LANE(3);
    ARM_LANE(4);
    ARM_LANE(5);
    ARM_LANE(6);
    ARM_LANE(7);
}
#undef ARM_LANE

QN_INLINE void arm_in_order(arm_sums *s)
{
    QN_IN_ORDER(s->rows[0]);
    QN_IN_ORDER(s->rows[1]);
}

QN_INLINE void arm_total(const arm_sums *s, int32x4_t *out)
{
    out[0] = s->rows[0];
    out[1] = s->rows[1];
}

#endif

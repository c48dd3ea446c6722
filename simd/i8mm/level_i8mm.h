/* What simd/neon/matmul_a16_neon.h multiplies with at this level: smmla, 2 rows by 2 columns of 8 bytes, 32 multiply-adds. The two columns are the
 * two bytes of one token's activations (simd/dotprod's split), so one token fills it as well as many. */
#ifndef QN_SIMD_LEVEL_I8MM_H
#define QN_SIMD_LEVEL_I8MM_H

#include "simd/neon/neon.h"

#define ARM_LEVEL "i8mm"

/* Rows 2i, 2i + 1 of 8 columns. */
typedef struct arm_weights {
    int8x16_t two[4];
} arm_weights;
typedef int8x16_t arm_input; /* hi of 8 columns, then lo */
typedef struct arm_sums {
    int32x4_t two[4];        /* row 2i: hi, lo; row 2i + 1: hi, lo */
} arm_sums;

QN_INLINE arm_sums arm_zero(void)
{
    const int32x4_t zero = vdupq_n_s32(0);
    return (arm_sums){ { zero, zero, zero, zero } };
}

QN_INLINE arm_input arm_load(const qn_act *act, int32_t t, int64_t column)
{
    return vld1q_s8(act->planes + 2 * (t * act->q_stride + column));
}

/* 4 bytes of each of 4 rows, twice, become 8 bytes of 2 rows. */
QN_INLINE int8x16_t zip_low(int8x16_t a, int8x16_t b)
{
    return vreinterpretq_s8_s32(vzip1q_s32(vreinterpretq_s32_s8(a), vreinterpretq_s32_s8(b)));
}

QN_INLINE int8x16_t zip_high(int8x16_t a, int8x16_t b)
{
    return vreinterpretq_s8_s32(vzip2q_s32(vreinterpretq_s32_s8(a), vreinterpretq_s32_s8(b)));
}

#define arm_weights_of(p, q) zip_all((p).a, (p).b, (q).a, (q).b)
QN_INLINE arm_weights zip_all(int8x16_t a0, int8x16_t b0, int8x16_t a1, int8x16_t b1)
{
    return (arm_weights){ { zip_low(a0, b0), zip_high(a0, b0), zip_low(a1, b1), zip_high(a1, b1) } };
}

QN_INLINE void arm_dot(arm_sums *s, const arm_weights *w, arm_input x)
{
    QN_UNROLL
    for (int32_t i = 0; i < 4; i++) s->two[i] = vmmlaq_s32(s->two[i], w->two[i], x);
}

QN_INLINE void arm_in_order(arm_sums *s)
{
    QN_UNROLL
    for (int32_t i = 0; i < 4; i++) QN_IN_ORDER(s->two[i]);
}

QN_INLINE void arm_total(const arm_sums *s, int32x4_t *out)
{
    QN_UNROLL
    for (int32_t i = 0; i < 2; i++) {
        const int32x4_t hi = vuzp1q_s32(s->two[2 * i], s->two[2 * i + 1]), lo = vuzp2q_s32(s->two[2 * i], s->two[2 * i + 1]);
        out[i] = vaddq_s32(vshlq_n_s32(hi, 8), lo);
    }
}

int64_t qn_peak_i8mm(int64_t rounds);
void qn_rows_init_legacy_i8mm(qn_kernels *k);
void qn_rows_init_k_i8mm(qn_kernels *k);
void qn_rows_init_levels_i8mm(qn_kernels *k);

#endif

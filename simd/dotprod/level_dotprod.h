/* What simd/neon/matmul_a16_neon.h multiplies with at this level: sdot by element, 16 multiply-adds of bytes. An activation is two bytes,
 * 256 * hi + lo, whose sums stay apart until the block is done. */
#ifndef QN_SIMD_LEVEL_DOTPROD_H
#define QN_SIMD_LEVEL_DOTPROD_H

#include "simd/neon/neon.h"

#define ARM_LEVEL "dotprod"

/* 4 rows of 4 columns each: rows 0-3 of columns 0 4 1 5 and 2 6 3 7, then rows 4-7. */
typedef struct arm_weights {
    int8x16_t quad[4];
} arm_weights;
typedef int8x16_t arm_input; /* hi of 8 columns in the order 0 4 1 5 2 6 3 7, then lo */
typedef struct arm_sums {
    int32x4_t hi[2], lo[2];
} arm_sums;

QN_INLINE arm_sums arm_zero(void)
{
    const int32x4_t zero = vdupq_n_s32(0);
    return (arm_sums){ { zero, zero }, { zero, zero } };
}

QN_INLINE arm_input arm_load(const qn_act *act, int32_t t, int64_t column)
{
    return vld1q_s8(act->planes + 2 * (t * act->q_stride + column));
}

#define arm_weights_of(p, q) ((arm_weights){ { (p).a, (p).b, (q).a, (q).b } })

QN_INLINE void arm_dot(arm_sums *s, const arm_weights *w, arm_input x)
{
    QN_UNROLL
    for (int32_t i = 0; i < 2; i++) {
        s->hi[i] = vdotq_laneq_s32(s->hi[i], w->quad[2 * i], x, 0);
        s->lo[i] = vdotq_laneq_s32(s->lo[i], w->quad[2 * i], x, 2);
        s->hi[i] = vdotq_laneq_s32(s->hi[i], w->quad[2 * i + 1], x, 1);
        s->lo[i] = vdotq_laneq_s32(s->lo[i], w->quad[2 * i + 1], x, 3);
    }
}

QN_INLINE void arm_in_order(arm_sums *s)
{
    QN_UNROLL
    for (int32_t i = 0; i < 2; i++) {
        QN_IN_ORDER(s->hi[i]);
        QN_IN_ORDER(s->lo[i]);
    }
}

QN_INLINE void arm_total(const arm_sums *s, int32x4_t *out)
{
    QN_UNROLL
    for (int32_t i = 0; i < 2; i++) out[i] = vaddq_s32(vshlq_n_s32(s->hi[i], 8), s->lo[i]);
}

void qn_split_a16_dotprod(const int16_t *q, int64_t n_blocks, int8_t *planes);
int64_t qn_peak_dotprod(int64_t rounds);
void qn_rows_init_legacy_dotprod(qn_kernels *k);
void qn_rows_init_k_dotprod(qn_kernels *k);
void qn_rows_init_levels_dotprod(qn_kernels *k);

#endif

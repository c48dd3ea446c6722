/* Layers with a state: sixteen lanes are four registers. */
#include "simd/neon/neon.h"

typedef struct qn_v16 {
    float32x4_t v[4];
} qn_v16;
#define QN_ALL(f, a) (qn_v16){ { f(a.v[0]), f(a.v[1]), f(a.v[2]), f(a.v[3]) } }
#define QN_ALL2(f, a, b) (qn_v16){ { f(a.v[0], b.v[0]), f(a.v[1], b.v[1]), f(a.v[2], b.v[2]), f(a.v[3], b.v[3]) } }
QN_INLINE qn_v16 qn_v16_set(float x)
{
    const float32x4_t v = vdupq_n_f32(x);
    return (qn_v16){ { v, v, v, v } };
}
QN_INLINE qn_v16 qn_v16_load(const float *x)
{
    return (qn_v16){ { vld1q_f32(x), vld1q_f32(x + 4), vld1q_f32(x + 8), vld1q_f32(x + 12) } };
}
QN_INLINE qn_v16 qn_v16_head(const float *x, int64_t left)
{
    if (left >= 16) return qn_v16_load(x);
    float t[16] = { 0 };
    for (int64_t i = 0; i < left; i++) t[i] = x[i];
    return qn_v16_load(t);
}
QN_INLINE void qn_v16_store(float *x, qn_v16 v)
{
    QN_UNROLL
    for (int32_t i = 0; i < 4; i++) vst1q_f32(x + 4 * i, v.v[i]);
}
QN_INLINE void qn_v16_put(float *x, int64_t left, qn_v16 v)
{
    float t[16];
    qn_v16_store(left >= 16 ? x : t, v);
    for (int64_t i = 0; left < 16 && i < left; i++) x[i] = t[i];
}
QN_INLINE qn_v16 qn_v16_add(qn_v16 a, qn_v16 b) { return QN_ALL2(vaddq_f32, a, b); }
QN_INLINE qn_v16 qn_v16_sub(qn_v16 a, qn_v16 b) { return QN_ALL2(vsubq_f32, a, b); }
QN_INLINE qn_v16 qn_v16_mul(qn_v16 a, qn_v16 b) { return QN_ALL2(vmulq_f32, a, b); }
QN_INLINE qn_v16 qn_v16_div(qn_v16 a, qn_v16 b) { return QN_ALL2(vdivq_f32, a, b); }
QN_INLINE qn_v16 qn_v16_fma(qn_v16 a, qn_v16 b, qn_v16 c)
{
    return (qn_v16){ { vfmaq_f32(c.v[0], a.v[0], b.v[0]), vfmaq_f32(c.v[1], a.v[1], b.v[1]), vfmaq_f32(c.v[2], a.v[2], b.v[2]),
                       vfmaq_f32(c.v[3], a.v[3], b.v[3]) } };
}
QN_INLINE qn_v16 qn_v16_exp(qn_v16 x) { return QN_ALL(qn_exp_neon, x); }
QN_INLINE qn_v16 qn_v16_neg(qn_v16 x) { return QN_ALL(vnegq_f32, x); }
QN_INLINE qn_v16 qn_v16_abs(qn_v16 x) { return QN_ALL(vabsq_f32, x); }
QN_INLINE qn_v16 qn_v16_max0(qn_v16 x)
{
    const qn_v16 zero = qn_v16_set(0);
    return QN_ALL2(qn_larger, x, zero);
}

#define QN_LEVEL neon
#include "simd/recur_lanes.h"

/* Layers with a state: sixteen lanes are two registers. */
#include "simd/avx2/avx2.h"

typedef struct qn_v16 {
    __m256 lo, hi;
} qn_v16;
#define QN_BOTH(f, a) (qn_v16){ f(a.lo), f(a.hi) }
#define QN_BOTH2(f, a, b) (qn_v16){ f(a.lo, b.lo), f(a.hi, b.hi) }
QN_INLINE qn_v16 qn_v16_set(float x) { return (qn_v16){ _mm256_set1_ps(x), _mm256_set1_ps(x) }; }
QN_INLINE qn_v16 qn_v16_load(const float *x) { return (qn_v16){ _mm256_loadu_ps(x), _mm256_loadu_ps(x + 8) }; }
QN_INLINE qn_v16 qn_v16_head(const float *x, int64_t left)
{
    return (qn_v16){ qn_load8(x, left), left > 8 ? qn_load8(x + 8, left - 8) : _mm256_setzero_ps() };
}
QN_INLINE void qn_v16_put(float *x, int64_t left, qn_v16 v)
{
    qn_store8(x, left, v.lo);
    if (left > 8) qn_store8(x + 8, left - 8, v.hi);
}
QN_INLINE void qn_v16_store(float *x, qn_v16 v) { qn_v16_put(x, 16, v); }
QN_INLINE qn_v16 qn_v16_add(qn_v16 a, qn_v16 b) { return QN_BOTH2(_mm256_add_ps, a, b); }
QN_INLINE qn_v16 qn_v16_sub(qn_v16 a, qn_v16 b) { return QN_BOTH2(_mm256_sub_ps, a, b); }
QN_INLINE qn_v16 qn_v16_mul(qn_v16 a, qn_v16 b) { return QN_BOTH2(_mm256_mul_ps, a, b); }
QN_INLINE qn_v16 qn_v16_div(qn_v16 a, qn_v16 b) { return QN_BOTH2(_mm256_div_ps, a, b); }
QN_INLINE qn_v16 qn_v16_fma(qn_v16 a, qn_v16 b, qn_v16 c)
{
    return (qn_v16){ _mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi) };
}
QN_INLINE qn_v16 qn_v16_exp(qn_v16 x) { return QN_BOTH(qn_exp_avx2, x); }
QN_INLINE qn_v16 qn_v16_neg(qn_v16 x)
{
    const qn_v16 sign = qn_v16_set(-0.0f);
    return QN_BOTH2(_mm256_xor_ps, x, sign);
}
QN_INLINE qn_v16 qn_v16_abs(qn_v16 x)
{
    const qn_v16 sign = qn_v16_set(-0.0f);
    return QN_BOTH2(_mm256_andnot_ps, sign, x);
}
QN_INLINE qn_v16 qn_v16_max0(qn_v16 x)
{
    const qn_v16 zero = qn_v16_set(0);
    return QN_BOTH2(_mm256_max_ps, x, zero);
}

#define QN_LEVEL avx2
#include "simd/recur_lanes.h"

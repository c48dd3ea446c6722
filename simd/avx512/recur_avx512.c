/* Layers with a state: sixteen lanes are one register. */
#include "simd/avx512/avx512.h"

typedef __m512 qn_v16;
QN_INLINE qn_v16 qn_v16_set(float x) { return _mm512_set1_ps(x); }
QN_INLINE qn_v16 qn_v16_load(const float *x) { return _mm512_loadu_ps(x); }
QN_INLINE void qn_v16_store(float *x, qn_v16 v) { _mm512_storeu_ps(x, v); }
QN_INLINE qn_v16 qn_v16_head(const float *x, int64_t left) { return qn_load16(x, left); }
QN_INLINE void qn_v16_put(float *x, int64_t left, qn_v16 v) { qn_store16(x, left, v); }
QN_INLINE qn_v16 qn_v16_add(qn_v16 a, qn_v16 b) { return _mm512_add_ps(a, b); }
QN_INLINE qn_v16 qn_v16_sub(qn_v16 a, qn_v16 b) { return _mm512_sub_ps(a, b); }
QN_INLINE qn_v16 qn_v16_mul(qn_v16 a, qn_v16 b) { return _mm512_mul_ps(a, b); }
QN_INLINE qn_v16 qn_v16_div(qn_v16 a, qn_v16 b) { return _mm512_div_ps(a, b); }
QN_INLINE qn_v16 qn_v16_fma(qn_v16 a, qn_v16 b, qn_v16 c) { return _mm512_fmadd_ps(a, b, c); }
QN_INLINE qn_v16 qn_v16_exp(qn_v16 x) { return qn_exp_avx512(x); }
QN_INLINE qn_v16 qn_v16_neg(qn_v16 x) { return _mm512_xor_ps(x, _mm512_set1_ps(-0.0f)); }
QN_INLINE qn_v16 qn_v16_abs(qn_v16 x) { return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), x); }
QN_INLINE qn_v16 qn_v16_max0(qn_v16 x) { return _mm512_max_ps(x, _mm512_setzero_ps()); }

#define QN_LEVEL avx512
#include "simd/recur_lanes.h"

/* Shared by the Arm kernels (armv8.0, of which NEON is a part): loads with a tail, and simd/scalar/exp_scalar.c's steps four at a time. */
#ifndef QN_SIMD_NEON_H
#define QN_SIMD_NEON_H

#include <arm_neon.h>

#include "simd/panel.h"

/* Kernels are written once with a constant number of rows or tokens, and the compiler unrolls each. */
#define QN_INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define QN_UNROLL _Pragma("clang loop unroll(full)")
#else
#define QN_UNROLL _Pragma("GCC unroll 32")
#endif
/* No instruction, but what the register waits for comes before what follows: gcc else gathers loads and products of an unrolled loop, and spills. */
#define QN_IN_ORDER(a) __asm__ volatile("" : "+w"(a))

static __attribute__((noinline, cold, unused)) float32x4_t qn_load_tail(const float *x, int64_t left)
{
    float t[4] = { 0 };
    for (int64_t i = 0; i < left; i++) t[i] = x[i];
    return vld1q_f32(t);
}

static __attribute__((noinline, cold, unused)) void qn_store_tail(float *x, int64_t left, float32x4_t v)
{
    float t[4];
    vst1q_f32(t, v);
    for (int64_t i = 0; i < left; i++) x[i] = t[i];
}

/** The first min(left, 4) floats, then zeros; nothing behind them is read. */
QN_INLINE float32x4_t qn_load4(const float *x, int64_t left)
{
    return left >= 4 ? vld1q_f32(x) : qn_load_tail(x, left);
}

QN_INLINE void qn_store4(float *x, int64_t left, float32x4_t v)
{
    if (left >= 4) vst1q_f32(x, v);
    else qn_store_tail(x, left, v);
}

/** Lanes below left are all ones. */
QN_INLINE uint32x4_t qn_mask4(int64_t left)
{
    static const int32_t lane[4] = { 0, 1, 2, 3 };
    return vcgtq_s32(vdupq_n_s32(left < 4 ? (int32_t)left : 4), vld1q_s32(lane));
}

/** 4 floats of 4 halves. */
QN_INLINE float32x4_t qn_load4_f16(const uint16_t *h)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(h)));
}

/** The larger one; `max` where v is NaN. */
QN_INLINE float32x4_t qn_larger(float32x4_t v, float32x4_t max)
{
    return vbslq_f32(vcgtq_f32(v, max), v, max);
}

/** Sum of 16 lanes: halves 8, 4, 2, 1. */
QN_INLINE float qn_tree16_neon(const float32x4_t *lane)
{
    const float32x4_t b = vaddq_f32(vaddq_f32(lane[0], lane[2]), vaddq_f32(lane[1], lane[3]));
    const float32x2_t c = vadd_f32(vget_low_f32(b), vget_high_f32(b));
    return vget_lane_f32(c, 0) + vget_lane_f32(c, 1);
}

QN_INLINE float32x4_t qn_expm1_near_neon(float32x4_t r)
{
    float32x4_t p = vfmaq_f32(vdupq_n_f32(0x1.6c16c2p-10f), vdupq_n_f32(0x1.a01a02p-13f), r);
    p = vfmaq_f32(vdupq_n_f32(0x1.111112p-7f), p, r);
    p = vfmaq_f32(vdupq_n_f32(0x1.555556p-5f), p, r);
    p = vfmaq_f32(vdupq_n_f32(0x1.555556p-3f), p, r);
    p = vfmaq_f32(vdupq_n_f32(0.5f), p, r);
    return vfmaq_f32(r, p, vmulq_f32(r, r));
}

QN_INLINE float32x4_t qn_reduce_neon(float32x4_t z, int32x4_t *n)
{
    const float32x4_t round = vdupq_n_f32(0x1.8p23f);
    const float32x4_t k = vsubq_f32(vfmaq_f32(round, z, vdupq_n_f32(0x1.715476p0f)), round);
    *n = vcvtq_s32_f32(k);
    return vfmsq_f32(vfmsq_f32(z, k, vdupq_n_f32(0x1.62e4p-1f)), k, vdupq_n_f32(0x1.7f7d1cp-20f));
}

QN_INLINE float32x4_t qn_pow2_neon(int32x4_t n)
{
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(n, vdupq_n_s32(127)), 23));
}

/* vmin and vmax give NaN where one is NaN: NaN stays. */
QN_INLINE float32x4_t qn_exp_neon(float32x4_t x)
{
    const float32x4_t z = vmaxq_f32(vdupq_n_f32(-104.0f), vminq_f32(vdupq_n_f32(89.0f), x));
    int32x4_t n;
    const float32x4_t r = qn_reduce_neon(z, &n), e = vaddq_f32(vdupq_n_f32(1.0f), qn_expm1_near_neon(r));
    const int32x4_t half = vshrq_n_s32(n, 1);
    return vmulq_f32(vmulq_f32(e, qn_pow2_neon(half)), qn_pow2_neon(vsubq_s32(n, half)));
}

QN_INLINE float32x4_t qn_tanh_neon(float32x4_t x)
{
    const float32x4_t b = vminq_f32(vdupq_n_f32(10.0f), vabsq_f32(x)), z = vaddq_f32(b, b);
    int32x4_t n;
    const float32x4_t r = qn_reduce_neon(z, &n), s = qn_pow2_neon(n);
    const float32x4_t e = vfmaq_f32(vsubq_f32(s, vdupq_n_f32(1.0f)), s, qn_expm1_near_neon(r));
    const float32x4_t t = vdivq_f32(e, vaddq_f32(e, vdupq_n_f32(2.0f)));
    return vbslq_f32(vdupq_n_u32(0x80000000), x, t);
}

QN_INLINE float qn_exp1_neon(float x)
{
    return vgetq_lane_f32(qn_exp_neon(vdupq_n_f32(x)), 0);
}

void qn_quantize_a16_neon(const float *x, int64_t n, int16_t *q, float *d, float *s);
void qn_rms_norm_neon(const float *x, const float *w, int64_t n, float eps, float *out);
void qn_layer_norm_neon(const float *x, const float *w, const float *b, int64_t n, float eps, float *out);
void qn_softmax_neon(float *x, int64_t n);
void qn_add_neon(const float *a, const float *b, int64_t n, float *out);
void qn_scale_neon(const float *x, float c, int64_t n, float *out);
void qn_softcap_neon(const float *x, float cap, int64_t n, float *out);
void qn_swiglu_neon(const float *gate, const float *up, int64_t n, float *out);
void qn_geglu_neon(const float *gate, const float *up, int64_t n, float *out);
void qn_silu_array_neon(const float *x, int64_t n, float *out);
void qn_gelu_array_neon(const float *x, int64_t n, float *out);
void qn_exp_array_neon(const float *x, int64_t n, float *out);
void qn_rope_neon(float *x, const float *cos_sin, int32_t n_rot, bool neox);
int64_t qn_argmax_neon(const float *x, int64_t n);
int64_t qn_peak_neon(int64_t rounds);
void qn_attention_neon(const qn_attn_args *a);
void qn_rows_init_kv_neon(qn_kernels *k);
void qn_sigmoid_array_neon(const float *x, int64_t n, float *out);
void qn_softplus_array_neon(const float *x, int64_t n, float *out);
void qn_conv_neon(const qn_conv_args *a);
void qn_scan_neon(const qn_scan_args *a);
void qn_selective_neon(const qn_selective_args *a);

/* Rows of the table. */
void qn_rows_init_float_neon(qn_kernels *k);
void qn_rows_init_legacy_neon(qn_kernels *k);
void qn_rows_init_k_neon(qn_kernels *k);
void qn_rows_init_levels_neon(qn_kernels *k);

/** Rows whose `run` alone changes: the panels are scalar's. */
QN_INLINE void qn_run_set(qn_kernels *k, const char *fmt_name, const char *isa, void (*run)(const qn_matmul_args *))
{
    qn_matmul_row *row = qn_kernels_row(k, fmt_name);
    if (!row) return;
    row->isa = isa;
    row->run = run;
}

#endif

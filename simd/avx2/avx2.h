/* Shared by the AVX2 kernels (AVX2, FMA, F16C): loads with a tail, and simd/scalar/exp_scalar.c's steps eight at a time. */
#ifndef QN_SIMD_AVX2_H
#define QN_SIMD_AVX2_H

#include <immintrin.h>

#include "simd/panel.h"

/* Kernels are written once with a constant number of rows or tokens, and the compiler unrolls each. */
#define QN_INLINE static inline __attribute__((always_inline))
/* Before a loop of a constant number of turns: its array elements become registers. Not under a sanitizer, whose checks make the unrolled code of
 * a format take clang 36 s to compile instead of 6. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#define QN_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(QN_SANITIZED)
#define QN_UNROLL
#elif defined(__clang__)
#define QN_UNROLL _Pragma("clang loop unroll(full)")
#else
#define QN_UNROLL _Pragma("GCC unroll 16")
#endif
/* No instruction, but what the register waits for comes before what follows: gcc 12 else gathers all products of an unrolled loop before it adds
 * them, and spills them (42 against 73 GMAC/s). */
#define QN_IN_ORDER(a) __asm__ volatile("" : "+x"(a))

/* A pointer that the compiler may not rebuild from others: rows of activations stay one register each, with constant displacements, where gcc
 * would spend an address computation on every load. */
#define QN_KEEP(pointer) __asm__("" : "+r"(pointer))

/** Lanes below left are all ones. */
QN_INLINE __m256i qn_mask8(int64_t left)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(left < 8 ? (int32_t)left : 8), lane);
}

/* Tails go through memory one by one: they are rare, masked stores are slow on AMD, and qemu's masked loads touch what the mask leaves out. */
static __attribute__((noinline, cold, unused)) __m256 qn_load_tail(const float *x, int64_t left)
{
    float t[8] = { 0 };
    for (int64_t i = 0; i < left; i++) t[i] = x[i];
    return _mm256_loadu_ps(t);
}

static __attribute__((noinline, cold, unused)) void qn_store_tail(float *x, int64_t left, __m256 v)
{
    float t[8];
    _mm256_storeu_ps(t, v);
    for (int64_t i = 0; i < left; i++) x[i] = t[i];
}

/** The first min(left, 8) floats, then zeros; nothing behind them is read. */
QN_INLINE __m256 qn_load8(const float *x, int64_t left)
{
    return left >= 8 ? _mm256_loadu_ps(x) : qn_load_tail(x, left);
}

QN_INLINE void qn_store8(float *x, int64_t left, __m256 v)
{
    if (left >= 8) _mm256_storeu_ps(x, v);
    else qn_store_tail(x, left, v);
}

/** 8 floats of 8 halves. */
QN_INLINE __m256 qn_load8_f16(const uint16_t *h)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)h));
}

/** 8 small integers as floats. */
QN_INLINE __m256 qn_load8_u8(const uint8_t *x)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)x)));
}

QN_INLINE __m256 qn_load8_i8(const int8_t *x)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)x)));
}

/** Sum of 16 lanes: halves 8, 4, 2, 1. */
QN_INLINE float qn_tree16_avx2(__m256 lo, __m256 hi)
{
    const __m256 a = _mm256_add_ps(lo, hi);
    const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_shuffle_ps(c, c, 1)));
}

/** Largest of 8 lanes, none of which is NaN. */
QN_INLINE float qn_max8_avx2(__m256 v)
{
    const __m128 a = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 b = _mm_max_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_shuffle_ps(b, b, 1)));
}

QN_INLINE __m256 qn_expm1_near_avx2(__m256 r)
{
    __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(0x1.a01a02p-13f), r, _mm256_set1_ps(0x1.6c16c2p-10f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.111112p-7f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.555556p-5f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.555556p-3f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.5f));
    return _mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r);
}

QN_INLINE __m256 qn_reduce_avx2(__m256 z, __m256i *n)
{
    const __m256 round = _mm256_set1_ps(0x1.8p23f);
    const __m256 k = _mm256_sub_ps(_mm256_fmadd_ps(z, _mm256_set1_ps(0x1.715476p0f), round), round);
    *n = _mm256_cvtps_epi32(k);
    return _mm256_fnmadd_ps(k, _mm256_set1_ps(0x1.7f7d1cp-20f), _mm256_fnmadd_ps(k, _mm256_set1_ps(0x1.62e4p-1f), z));
}

QN_INLINE __m256 qn_pow2_avx2(__m256i n)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}

/* min and max give their second operand where one is NaN: NaN stays. */
QN_INLINE __m256 qn_exp_avx2(__m256 x)
{
    const __m256 z = _mm256_max_ps(_mm256_set1_ps(-104.0f), _mm256_min_ps(_mm256_set1_ps(89.0f), x));
    __m256i n;
    const __m256 r = qn_reduce_avx2(z, &n), e = _mm256_add_ps(_mm256_set1_ps(1.0f), qn_expm1_near_avx2(r));
    const __m256i half = _mm256_srai_epi32(n, 1);
    return _mm256_mul_ps(_mm256_mul_ps(e, qn_pow2_avx2(half)), qn_pow2_avx2(_mm256_sub_epi32(n, half)));
}

QN_INLINE __m256 qn_tanh_avx2(__m256 x)
{
    const __m256 sign = _mm256_set1_ps(-0.0f), one = _mm256_set1_ps(1.0f), a = _mm256_andnot_ps(sign, x);
    const __m256 b = _mm256_min_ps(_mm256_set1_ps(10.0f), a), z = _mm256_add_ps(b, b);
    __m256i n;
    const __m256 r = qn_reduce_avx2(z, &n), s = qn_pow2_avx2(n);
    const __m256 e = _mm256_fmadd_ps(s, qn_expm1_near_avx2(r), _mm256_sub_ps(s, one));
    const __m256 t = _mm256_div_ps(e, _mm256_add_ps(e, _mm256_set1_ps(2.0f)));
    return _mm256_or_ps(_mm256_andnot_ps(sign, t), _mm256_and_ps(sign, x));
}

QN_INLINE float qn_exp1_avx2(float x)
{
    return _mm256_cvtss_f32(qn_exp_avx2(_mm256_set1_ps(x)));
}

void qn_encode_avx2(const qn_fmt *fmt, const float *w, const float *importance, int64_t n_blocks, uint8_t *out);
void qn_quantize_a16_avx2(const float *x, int64_t n, int16_t *q, float *d, float *s);
void qn_quantize_a8_avx2(const float *x, int64_t n, int8_t *q, float *d, float *s);
void qn_rms_norm_avx2(const float *x, const float *w, int64_t n, float eps, float *out);
void qn_layer_norm_avx2(const float *x, const float *w, const float *b, int64_t n, float eps, float *out);
void qn_softmax_avx2(float *x, int64_t n);
void qn_add_avx2(const float *a, const float *b, int64_t n, float *out);
void qn_scale_avx2(const float *x, float c, int64_t n, float *out);
void qn_softcap_avx2(const float *x, float cap, int64_t n, float *out);
void qn_swiglu_avx2(const float *gate, const float *up, int64_t n, float *out);
void qn_geglu_avx2(const float *gate, const float *up, int64_t n, float *out);
void qn_silu_array_avx2(const float *x, int64_t n, float *out);
void qn_gelu_array_avx2(const float *x, int64_t n, float *out);
void qn_exp_array_avx2(const float *x, int64_t n, float *out);
void qn_rope_avx2(float *x, const float *cos_sin, int32_t n_rot, bool neox);
int64_t qn_argmax_avx2(const float *x, int64_t n);
int64_t qn_peak_avx2(int64_t rounds);
void qn_attention_avx2(const qn_attn_args *a);
void qn_rows_init_kv_avx2(qn_kernels *k);
void qn_sigmoid_array_avx2(const float *x, int64_t n, float *out);
void qn_softplus_array_avx2(const float *x, int64_t n, float *out);
void qn_conv_avx2(const qn_conv_args *a);
void qn_scan_avx2(const qn_scan_args *a);
void qn_selective_avx2(const qn_selective_args *a);

QN_DECLARE_PRODUCTS(avx2)
void qn_matmul_f32_avx2(const qn_matmul_args *a);
void qn_matmul_f16_avx2(const qn_matmul_args *a);
void qn_matmul_bf16_avx2(const qn_matmul_args *a);
void qn_matmul_fallback_avx2(const qn_matmul_args *a);

#endif

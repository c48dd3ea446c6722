/* Shared by the AVX-512 kernels (F, BW, DQ, VL, CD): one panel line, or 16 columns, is one register. */
#ifndef QN_SIMD_AVX512_H
#define QN_SIMD_AVX512_H

#include "simd/avx2/avx2.h"

/* As QN_IN_ORDER, for any of the 32 registers. */
#define QN_IN_ORDER16(a) __asm__ volatile("" : "+v"(a))

/** 16 floats of 16 halves. */
QN_INLINE __m512 qn_load16_f16(const uint16_t *h)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)h));
}

/** 16 small integers as floats. */
QN_INLINE __m512 qn_load16_u8(const uint8_t *x)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)x)));
}

QN_INLINE __m512 qn_load16_i8(const int8_t *x)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)x)));
}

/** Lanes below left. */
QN_INLINE __mmask16 qn_mask16(int64_t left)
{
    return left >= 16 ? 0xffff : left > 0 ? (__mmask16)((1u << left) - 1) : 0;
}

/** The first min(left, 16) floats, then zeros; nothing behind them is read. */
QN_INLINE __m512 qn_load16(const float *x, int64_t left)
{
    return left >= 16 ? _mm512_loadu_ps(x) : _mm512_maskz_loadu_ps(qn_mask16(left), x);
}

QN_INLINE void qn_store16(float *x, int64_t left, __m512 v)
{
    if (left >= 16) _mm512_storeu_ps(x, v);
    else _mm512_mask_storeu_ps(x, qn_mask16(left), v);
}

/** Sum of 16 lanes: halves 8, 4, 2, 1. */
QN_INLINE float qn_tree16_avx512(__m512 v)
{
    return qn_tree16_avx2(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
}

/** Largest of 16 lanes, none of which is NaN. */
QN_INLINE float qn_max16_avx512(__m512 v)
{
    return qn_max8_avx2(_mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1)));
}

/* ---- simd/scalar/exp_scalar.c's steps, sixteen at a time ---- */

QN_INLINE __m512 qn_expm1_near_avx512(__m512 r)
{
    __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(0x1.a01a02p-13f), r, _mm512_set1_ps(0x1.6c16c2p-10f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.111112p-7f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.555556p-5f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.555556p-3f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5f));
    return _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r);
}

/** z = k ln 2 + r with k a whole number. */
QN_INLINE __m512 qn_reduce_avx512(__m512 z, __m512 *k)
{
    const __m512 round = _mm512_set1_ps(0x1.8p23f);
    *k = _mm512_sub_ps(_mm512_fmadd_ps(z, _mm512_set1_ps(0x1.715476p0f), round), round);
    return _mm512_fnmadd_ps(*k, _mm512_set1_ps(0x1.7f7d1cp-20f), _mm512_fnmadd_ps(*k, _mm512_set1_ps(0x1.62e4p-1f), z));
}

/* min and max give their second operand where one is NaN: NaN stays. vscalefps rounds once, as the two factors of the scalar steps do. */
QN_INLINE __m512 qn_exp_avx512(__m512 x)
{
    const __m512 z = _mm512_max_ps(_mm512_set1_ps(-104.0f), _mm512_min_ps(_mm512_set1_ps(89.0f), x));
    __m512 k;
    const __m512 r = qn_reduce_avx512(z, &k);
    return _mm512_scalef_ps(_mm512_add_ps(_mm512_set1_ps(1.0f), qn_expm1_near_avx512(r)), k);
}

QN_INLINE __m512 qn_tanh_avx512(__m512 x)
{
    const __m512 sign = _mm512_set1_ps(-0.0f), one = _mm512_set1_ps(1.0f), a = _mm512_andnot_ps(sign, x);
    const __m512 b = _mm512_min_ps(_mm512_set1_ps(10.0f), a);
    __m512 k;
    const __m512 r = qn_reduce_avx512(_mm512_add_ps(b, b), &k), s = _mm512_scalef_ps(one, k);
    const __m512 e = _mm512_fmadd_ps(s, qn_expm1_near_avx512(r), _mm512_sub_ps(s, one));
    const __m512 t = _mm512_div_ps(e, _mm512_add_ps(e, _mm512_set1_ps(2.0f)));
    return _mm512_or_ps(_mm512_andnot_ps(sign, t), _mm512_and_ps(sign, x));
}

/* ---- rows side by side in memory ---- */

/* Up to 14 rows of anything, reached with five registers: two bases 7 rows apart, and the bytes of 1, 3 and 5 rows, which x86's factors 2 and 4
 * complete. */
typedef struct qn_rows14 {
    const char *base[2];
    int64_t s1, s3, s5;
} qn_rows14;

QN_INLINE qn_rows14 qn_rows14_open(const void *at, int64_t row_bytes)
{
    return (qn_rows14){ { at, (const char *)at + 7 * row_bytes }, row_bytes, 3 * row_bytes, 5 * row_bytes };
}

QN_INLINE const void *qn_rows14_at(const qn_rows14 *r, const int32_t t)
{
    const char *base = r->base[t / 7];
    switch (t % 7) {
    case 0: return base;
    case 1: return base + r->s1;
    case 2: return base + 2 * r->s1;
    case 3: return base + r->s3;
    case 4: return base + 4 * r->s1;
    case 5: return base + r->s5;
    default: return base + 2 * r->s3;
    }
}

/** Onwards along the rows. The compiler may not keep what it computed from the old place: it would need a register for each row. */
QN_INLINE void qn_rows14_step(qn_rows14 *r, int64_t bytes)
{
    r->base[0] += bytes;
    r->base[1] += bytes;
    QN_KEEP(r->base[0]);
    QN_KEEP(r->base[1]);
}

void qn_encode_avx512(const qn_fmt *fmt, const float *w, const float *importance, int64_t n_blocks, uint8_t *out);
void qn_quantize_a16_avx512(const float *x, int64_t n, int16_t *q, float *d, float *s);
void qn_rms_norm_avx512(const float *x, const float *w, int64_t n, float eps, float *out);
void qn_layer_norm_avx512(const float *x, const float *w, const float *b, int64_t n, float eps, float *out);
void qn_softmax_avx512(float *x, int64_t n);
void qn_add_avx512(const float *a, const float *b, int64_t n, float *out);
void qn_scale_avx512(const float *x, float c, int64_t n, float *out);
void qn_softcap_avx512(const float *x, float cap, int64_t n, float *out);
void qn_swiglu_avx512(const float *gate, const float *up, int64_t n, float *out);
void qn_geglu_avx512(const float *gate, const float *up, int64_t n, float *out);
void qn_silu_array_avx512(const float *x, int64_t n, float *out);
void qn_gelu_array_avx512(const float *x, int64_t n, float *out);
void qn_exp_array_avx512(const float *x, int64_t n, float *out);
void qn_rope_avx512(float *x, const float *cos_sin, int32_t n_rot, bool neox);
int64_t qn_argmax_avx512(const float *x, int64_t n);
void qn_attention_avx512(const qn_attn_args *a);
void qn_sigmoid_array_avx512(const float *x, int64_t n, float *out);
void qn_softplus_array_avx512(const float *x, int64_t n, float *out);
void qn_conv_avx512(const qn_conv_args *a);
void qn_scan_avx512(const qn_scan_args *a);
void qn_selective_avx512(const qn_selective_args *a);
void qn_rows_init_kv_avx512(qn_kernels *k);
int64_t qn_peak_avx512(int64_t rounds);

QN_DECLARE_PRODUCTS(avx512)
void qn_matmul_f32_avx512(const qn_matmul_args *a);
void qn_matmul_f16_avx512(const qn_matmul_args *a);
void qn_matmul_bf16_avx512(const qn_matmul_args *a);

#endif

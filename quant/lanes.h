/* Vectors of floats as wide as the instruction set of the file that includes this, one block of weights a lane. Lanes never meet, and
 * each operation rounds once, so the width changes no bit of any result. */
#ifndef QN_QUANT_LANES_H
#define QN_QUANT_LANES_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#include <immintrin.h>
enum { QN_LANES = 16 };
#elif defined(__AVX2__)
#include <immintrin.h>
enum { QN_LANES = 8 };
#else
#if defined(__SSE2__)
#include <emmintrin.h>
#endif
enum { QN_LANES = 4 };
#endif

typedef float qn_vf __attribute__((vector_size(4 * QN_LANES)));
typedef int32_t qn_vi __attribute__((vector_size(4 * QN_LANES)));
#define QN_LANES_INLINE static inline __attribute__((always_inline))

#if defined(__AVX512F__) && defined(__AVX512DQ__)
typedef __mmask16 qn_vm;
QN_LANES_INLINE qn_vf qn_v_min(qn_vf a, qn_vf b) { return (qn_vf)_mm512_min_ps((__m512)a, (__m512)b); }
QN_LANES_INLINE qn_vf qn_v_max(qn_vf a, qn_vf b) { return (qn_vf)_mm512_max_ps((__m512)a, (__m512)b); }
QN_LANES_INLINE qn_vm qn_v_gt(qn_vf a, qn_vf b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GT_OQ); }
QN_LANES_INLINE qn_vf qn_v_pick(qn_vm m, qn_vf a, qn_vf b) { return (qn_vf)_mm512_mask_blend_ps(m, (__m512)b, (__m512)a); }
#else
typedef qn_vi qn_vm; /* all ones or all zeros */
#if defined(__AVX2__)
QN_LANES_INLINE qn_vf qn_v_min(qn_vf a, qn_vf b) { return (qn_vf)_mm256_min_ps((__m256)a, (__m256)b); }
QN_LANES_INLINE qn_vf qn_v_max(qn_vf a, qn_vf b) { return (qn_vf)_mm256_max_ps((__m256)a, (__m256)b); }
#elif defined(__SSE2__)
QN_LANES_INLINE qn_vf qn_v_min(qn_vf a, qn_vf b) { return (qn_vf)_mm_min_ps((__m128)a, (__m128)b); }
QN_LANES_INLINE qn_vf qn_v_max(qn_vf a, qn_vf b) { return (qn_vf)_mm_max_ps((__m128)a, (__m128)b); }
#endif
QN_LANES_INLINE qn_vm qn_v_gt(qn_vf a, qn_vf b) { return a > b; }
QN_LANES_INLINE qn_vf qn_v_pick(qn_vm m, qn_vf a, qn_vf b) { return (qn_vf)((m & (qn_vi)a) | (~m & (qn_vi)b)); }
#if !defined(__SSE2__)
QN_LANES_INLINE qn_vf qn_v_min(qn_vf a, qn_vf b) { return qn_v_pick(a < b, a, b); }
QN_LANES_INLINE qn_vf qn_v_max(qn_vf a, qn_vf b) { return qn_v_pick(a > b, a, b); }
#endif
#endif

QN_LANES_INLINE qn_vf qn_v_set(float x)
{
    return (qn_vf){ 0 } + x;
}

QN_LANES_INLINE qn_vf qn_v_abs(qn_vf x)
{
    return (qn_vf)((qn_vi)x & 0x7fffffff);
}

/** To the nearest whole number, ties to even; |x| below 2^22. */
QN_LANES_INLINE qn_vf qn_v_round(qn_vf x)
{
    return x + 0x1.8p23f - 0x1.8p23f;
}

QN_LANES_INLINE qn_vf qn_v_clamp(qn_vf x, float lo, float hi)
{
    return qn_v_min(qn_v_max(x, qn_v_set(lo)), qn_v_set(hi));
}

/** a / b; 0 where b is not above 0 */
QN_LANES_INLINE qn_vf qn_v_ratio(qn_vf a, qn_vf b)
{
    const qn_vm some = qn_v_gt(b, qn_v_set(0));
    return qn_v_pick(some, a / qn_v_pick(some, b, qn_v_set(1)), qn_v_set(0));
}

/** 1 / x, |x| at least 2^-100; 0 where x is nearer to zero */
QN_LANES_INLINE qn_vf qn_v_inverse(qn_vf x)
{
    const qn_vm some = qn_v_gt(qn_v_abs(x), qn_v_set(0x1p-100f));
    return qn_v_pick(some, 1.0f / qn_v_pick(some, x, qn_v_set(1)), qn_v_set(0));
}

/** The value that binary16 has nearest to x, within its finite range. */
QN_LANES_INLINE qn_vf qn_v_f16(qn_vf x)
{
    const qn_vi sign = (qn_vi)x & INT32_MIN;
    const qn_vf a = qn_v_min(qn_v_abs(x), qn_v_set(65504.0f));
    const qn_vi bits = (qn_vi)a;
    const qn_vf normal = (qn_vf)((bits + 0xfff + (bits >> 13 & 1)) & ~0x1fff);
    const qn_vf tiny = a + 0.5f - 0.5f; /* the float unit rounds at 2^-24 */
    const qn_vf r = qn_v_pick(qn_v_gt(qn_v_set(0x1p-14f), a), tiny, normal);
    return (qn_vf)((qn_vi)r | sign);
}

/* Lane l of the two vectors that a pair becomes when the blocks of `s` lanes beside the diagonal change places. */
#define QN_CROSS_A(l, s) ((l) & (s) ? QN_LANES + (l) - (s) : (l))
#define QN_CROSS_B(l, s) ((l) & (s) ? QN_LANES + (l) : (l) + (s))
#define QN_FOUR(f, l, s) f(l, s), f(l + 1, s), f(l + 2, s), f(l + 3, s)
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define QN_ALL_LANES(f, s) QN_FOUR(f, 0, s), QN_FOUR(f, 4, s), QN_FOUR(f, 8, s), QN_FOUR(f, 12, s)
#elif defined(__AVX2__)
#define QN_ALL_LANES(f, s) QN_FOUR(f, 0, s), QN_FOUR(f, 4, s)
#else
#define QN_ALL_LANES(f, s) QN_FOUR(f, 0, s)
#endif
#define QN_CROSS(v, s) \
    for (int i = 0; i < QN_LANES; i++) { \
        if (i & (s)) continue; \
        const qn_vf a = v[i], b = v[i + (s)]; \
        v[i] = __builtin_shufflevector(a, b, QN_ALL_LANES(QN_CROSS_A, s)); \
        v[i + (s)] = __builtin_shufflevector(a, b, QN_ALL_LANES(QN_CROSS_B, s)); \
    }

/** Lane l of vector i becomes lane i of vector l. @param v [QN_LANES] */
QN_LANES_INLINE void qn_v_transpose(qn_vf *v)
{
    QN_CROSS(v, 1)
    QN_CROSS(v, 2)
#if defined(__AVX2__)
    QN_CROSS(v, 4)
#endif
#if defined(__AVX512F__) && defined(__AVX512DQ__)
    QN_CROSS(v, 8)
#endif
}

#endif

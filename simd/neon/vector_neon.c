/* Sums, products, rotation, largest value. */
#include "simd/neon/neon.h"

#include <math.h>

void qn_add_neon(const float *a, const float *b, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i += 4) qn_store4(out + i, n - i, vaddq_f32(qn_load4(a + i, n - i), qn_load4(b + i, n - i)));
}

void qn_scale_neon(const float *x, float c, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i += 4) qn_store4(out + i, n - i, vmulq_n_f32(qn_load4(x + i, n - i), c));
}

/* Pairs (i, i + half): c0 s0 c1 s1 ... is parted into c and s. */
static void rope_halves(float *x, const float *cos_sin, int32_t half)
{
    for (int32_t i = 0; i < half; i += 4) {
        const int32_t left = half - i;
        const float32x4_t t0 = qn_load4(cos_sin + 2 * i, 2 * left), t1 = qn_load4(cos_sin + 2 * i + 4, 2 * left - 4);
        const float32x4_t c = vuzp1q_f32(t0, t1), s = vuzp2q_f32(t0, t1);
        const float32x4_t a = qn_load4(x + i, left), b = qn_load4(x + i + half, left);
        qn_store4(x + i, left, vfmaq_f32(vnegq_f32(vmulq_f32(b, s)), a, c));
        qn_store4(x + i + half, left, vfmaq_f32(vmulq_f32(b, c), a, s));
    }
}

/* Pairs (2i, 2i + 1): a a.. times c s.., then b b.. times -s c.. */
static void rope_neighbours(float *x, const float *cos_sin, int32_t n_rot)
{
    static const uint32_t signs[4] = { 0x80000000, 0, 0x80000000, 0 };
    const uint32x4_t sign = vld1q_u32(signs);
    for (int32_t i = 0; i < n_rot; i += 4) {
        const float32x4_t v = qn_load4(x + i, n_rot - i), cs = qn_load4(cos_sin + i, n_rot - i);
        const float32x4_t a = vtrn1q_f32(v, v), b = vtrn2q_f32(v, v), bs = vmulq_f32(b, vrev64q_f32(cs));
        const float32x4_t signed_bs = vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(bs), sign));
        qn_store4(x + i, n_rot - i, vfmaq_f32(signed_bs, a, cs));
    }
}

void qn_rope_neon(float *x, const float *cos_sin, int32_t n_rot, bool neox)
{
    if (neox) rope_halves(x, cos_sin, n_rot / 2);
    else rope_neighbours(x, cos_sin, n_rot);
}

/* The largest value first, then where it is: two quick passes beat one that carries indices. */
int64_t qn_argmax_neon(const float *x, int64_t n)
{
    const float32x4_t least = vdupq_n_f32(-INFINITY);
    float32x4_t max[4] = { least, least, least, least };
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int32_t j = 0; j < 4; j++) max[j] = qn_larger(vld1q_f32(x + i + 4 * j), max[j]);
    float top = vmaxvq_f32(qn_larger(qn_larger(max[0], max[1]), qn_larger(max[2], max[3])));
    for (; i < n; i++)
        if (x[i] > top) top = x[i];
    for (i = 0; i + 4 <= n; i += 4)
        if (vmaxvq_u32(vceqq_f32(vld1q_f32(x + i), vdupq_n_f32(top)))) break;
    for (; i < n; i++)
        if (x[i] == top) return i;
    return -1; /* nothing but NaN */
}

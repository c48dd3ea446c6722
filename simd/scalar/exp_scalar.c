/**
 * exp and tanh in steps that every vector unit has.
 *
 * z = n ln 2 + r with n the nearest integer and |r| <= ln 2 / 2, ln 2 in two parts (Cody and Waite) so that r is exact to its last bits;
 * e^r - 1 is the Taylor sum to r^7 / 7!: what is left out is below r^8 / 8! = 5.2e-9, a tenth of a unit in the last place of e^r.
 */
#include "simd/scalar/scalar.h"

#include <math.h>

/* 1.5 * 2^23: adding it rounds to an integer, to nearest even, as no value here reaches 2^22. */
#define ROUND 0x1.8p23f
#define LOG2E 0x1.715476p0f
#define LN2_HI 0x1.62e4p-1f      /* 15 bits: n * LN2_HI is exact */
#define LN2_LO 0x1.7f7d1cp-20f

/* e^r - 1, relatively accurate near 0. */
static float expm1_near(float r)
{
    float p = fmaf(0x1.a01a02p-13f, r, 0x1.6c16c2p-10f); /* 1/7!, 1/6! */
    p = fmaf(p, r, 0x1.111112p-7f);                      /* 1/5! */
    p = fmaf(p, r, 0x1.555556p-5f);                      /* 1/4! */
    p = fmaf(p, r, 0x1.555556p-3f);                      /* 1/3! */
    p = fmaf(p, r, 0.5f);
    return fmaf(p, r * r, r);
}

/* z = n ln 2 + r */
static float reduce(float z, int32_t *n)
{
    const float k = fmaf(z, LOG2E, ROUND) - ROUND;
    *n = (int32_t)k;
    return fmaf(k, -LN2_LO, fmaf(k, -LN2_HI, z));
}

/* 2^n for a normal result. */
static float pow2(int32_t n)
{
    return qn_f32_from_bits((uint32_t)(n + 127) << 23);
}

/** Within 1 ulp (0.995 measured), subnormal results included; below -104: 0, above 89: Inf; NaN: NaN. */
float qn_exp_scalar(float x)
{
    if (x != x) return x;
    float z = 89.0f < x ? 89.0f : x;
    z = -104.0f > z ? -104.0f : z;
    int32_t n;
    const float r = reduce(z, &n);
    const int32_t half = n >> 1; /* two factors: each normal where 2^n is not, one rounding */
    return (1.0f + expm1_near(r)) * pow2(half) * pow2(n - half);
}

/** e / (e + 2) with e = exp(2 |x|) - 1 and x's sign: relatively accurate everywhere. 1 from 10 on. */
float qn_tanh_scalar(float x)
{
    if (x != x) return x;
    const float a = fabsf(x), z = 10.0f < a ? 20.0f : a + a;
    int32_t n;
    const float r = reduce(z, &n), s = pow2(n);
    const float e = fmaf(s, expm1_near(r), s - 1.0f);
    return copysignf(e / (e + 2.0f), x);
}

void qn_exp_array_scalar(const float *x, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = qn_exp_scalar(x[i]);
}

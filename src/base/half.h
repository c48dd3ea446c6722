/* IEEE 754 binary16 and bfloat16, bit for bit: exact widening, round-to-nearest-even narrowing. */
#ifndef QN_BASE_HALF_H
#define QN_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t qn_f32_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

static inline float qn_f32_from_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, 4);
    return x;
}

/* Masks in place of branches: loops over it become vectors. */
static inline float qn_f32_from_f16(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, m = h & 0x7fff;
    const uint32_t tiny = 0u - (uint32_t)(m < 0x400), wild = 0u - (uint32_t)(m >= 0x7c00), nan = 0u - (uint32_t)(m > 0x7c00);
    const uint32_t sub = qn_f32_bits((float)(int32_t)m * 0x1p-24f); /* zero and subnormal: exact */
    const uint32_t a = ((m << 13) + 0x38000000 + (wild & 0x38000000)) | (nan & 0x400000); /* NaN: quiet, as the hardware does */
    return qn_f32_from_bits(sign | (tiny & sub) | (~tiny & a));
}

static inline uint16_t qn_f16_from_f32(float x)
{
    const uint32_t u = qn_f32_bits(x), sign = (u >> 16) & 0x8000, a = u & 0x7fffffff;
    if (a > 0x7f800000) return (uint16_t)(sign | 0x7e00 | ((a >> 13) & 0x3ff));
    if (a >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* 65520 and above round to infinity */
    if (a >= 0x38800000) {                                 /* normal */
        const uint32_t r = a - 0x38000000 + 0xfff + ((a >> 13) & 1);
        return (uint16_t)(sign | r >> 13);
    }
    const float t = qn_f32_from_bits(a) + 0.5f; /* adding 0.5 makes the float unit round at 2^-24 */
    return (uint16_t)(sign | (qn_f32_bits(t) - 0x3f000000));
}

static inline float qn_f32_from_bf16(uint16_t b)
{
    return qn_f32_from_bits((uint32_t)b << 16);
}

static inline uint16_t qn_bf16_from_f32(float x)
{
    const uint32_t u = qn_f32_bits(x);
    return (uint16_t)(x != x ? u >> 16 | 0x40 : (u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static inline uint16_t qn_load_u16(const void *p)
{
    uint16_t v;
    memcpy(&v, p, 2);
    return v;
}

static inline void qn_store_u16(void *p, uint16_t v)
{
    memcpy(p, &v, 2);
}

static inline void qn_store_f16(void *p, float x)
{
    qn_store_u16(p, qn_f16_from_f32(x));
}

/** x within -max .. max; NaN is 0. */
static inline float qn_clamp_finite(float x, float max)
{
    return x != x ? 0.0f : x > max ? max : x < -max ? -max : x;
}

#endif

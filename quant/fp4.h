/* The 4-bit floats (E2M1) of MXFP4 and NVFP4. */
#ifndef QN_QUANT_FP4_H
#define QN_QUANT_FP4_H

#include "src/base/half.h"

/* Twice the values: bit 3 of a code is the sign. Code 8 (minus zero) counts as plus zero. */
static const int8_t qn_fp4_doubles[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };

/* The same, rising, zero once. */
static const int8_t qn_fp4_rising[15] = { -12, -8, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 12 };

/** Twice the value of code 0 .. 15. */
static inline float qn_fp4_doubled(unsigned code)
{
    return (float)qn_fp4_doubles[code & 15];
}

/** Half of MXFP4's scale, 2^(e - 128); the first two are subnormal. */
static inline float qn_e8m0_half(uint8_t e)
{
    return qn_f32_from_bits(e < 2 ? (uint32_t)0x200000 << e : (uint32_t)(e - 1) << 23);
}

/** Its e for a power of two from 2^-128. */
static inline uint8_t qn_e8m0_from_half(float half)
{
    const uint32_t u = qn_f32_bits(half);
    return (uint8_t)(u >= 0x800000 ? (u >> 23) + 1 : u >= 0x400000);
}

#endif

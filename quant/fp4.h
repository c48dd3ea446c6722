/* The 4-bit floats (E2M1) of MXFP4 and NVFP4. */
#ifndef QN_QUANT_FP4_H
#define QN_QUANT_FP4_H

#include <stdint.h>

/** Twice the value of code 0 .. 15: bit 3 is the sign. Code 8 (minus zero) counts as plus zero. */
static inline float qn_fp4_doubled(unsigned code)
{
    static const int8_t doubled[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };
    return (float)doubled[code & 15];
}

#endif

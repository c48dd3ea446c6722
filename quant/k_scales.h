/* The twelve bytes that Q4_K and Q5_K share: eight 6-bit scales and eight 6-bit minimums. */
#ifndef QN_QUANT_K_SCALES_H
#define QN_QUANT_K_SCALES_H

#include <stdint.h>

/**
 * Scale and minimum (0 .. 63) of sub-block k, 0 .. 7.
 *    byte     0 .. 3                     4 .. 7                     8 .. 11
 *    bits 0-5 scale k                    minimum k                  0-3: low bits of scale k + 4
 *    bits 6-7 high bits of scale k + 4   high bits of minimum k + 4 4-7: low bits of minimum k + 4
 */
static inline void qn_k_scale_min(const uint8_t s[12], int k, int *scale, int *min)
{
    if (k < 4) {
        *scale = s[k] & 63;
        *min = s[k + 4] & 63;
    } else {
        *scale = (s[k + 4] & 15) | s[k - 4] >> 6 << 4;
        *min = s[k + 4] >> 4 | s[k] >> 6 << 4;
    }
}

/** The other way: the twelve bytes of eight scales and eight minimums, each 0 .. 63. */
static inline void qn_k_scale_min_store(uint8_t s[12], const int8_t scale[8], const int8_t min[8])
{
    for (int k = 0; k < 4; k++) {
        s[k] = (uint8_t)(scale[k] | scale[k + 4] >> 4 << 6);
        s[k + 4] = (uint8_t)(min[k] | min[k + 4] >> 4 << 6);
        s[k + 8] = (uint8_t)((scale[k + 4] & 15) | (min[k + 4] & 15) << 4);
    }
}

#endif

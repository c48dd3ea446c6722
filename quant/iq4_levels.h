/* The sixteen levels of IQ4_NL and IQ4_XS, closer together near zero. */
#ifndef QN_QUANT_IQ4_LEVELS_H
#define QN_QUANT_IQ4_LEVELS_H

#include <stdint.h>

static const int8_t qn_iq4_levels[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };

/** Level of code 0 .. 15. */
static inline float qn_iq4_level(unsigned code)
{
    return (float)qn_iq4_levels[code & 15];
}

#endif

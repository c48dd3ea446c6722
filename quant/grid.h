/* Codebooks of the IQ formats, and the decoding of one of their points. The tables are part of the formats. */
#ifndef QN_QUANT_GRID_H
#define QN_QUANT_GRID_H

#include <stdint.h>
#include <string.h>

/* Eight values of two bits each, value j in bits 2j, 2j + 1. */
extern const uint16_t qn_grid_iq2_xxs[256];
extern const uint16_t qn_grid_iq2_xs[512];
extern const uint16_t qn_grid_iq2_s[1024];
extern const uint16_t qn_grid_iq1[2048];
/* Four values of three bits, value j in bits 4j .. 4j + 2. */
extern const uint16_t qn_grid_iq3_xxs[256];
extern const uint16_t qn_grid_iq3_s[512];

static inline uint32_t qn_load_u32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

/** Eight signs of which seven are stored, in bits 0 .. 6 of `seven`: the number of minus signs is even. */
static inline unsigned qn_even_signs(uint32_t seven)
{
    unsigned s = seven & 127, odd = s ^ s >> 4;
    odd ^= odd >> 2;
    odd ^= odd >> 1;
    return s | (odd & 1) << 7;
}

/** Eight weights of a point of IQ2: scale * magnitude, minus where the sign's bit is set. @param out [8] */
static inline void qn_grid2_decode(float scale, uint16_t point, unsigned signs, float *out)
{
    static const uint8_t magnitude[4] = { 8, 25, 43, 0 }; /* the last is in no grid */
    for (int j = 0; j < 8; j++) {
        const float w = scale * (float)magnitude[point >> 2 * j & 3];
        out[j] = signs >> j & 1 ? -w : w;
    }
}

/** Four weights of a point of IQ3. @param magnitude [8] of the format @param out [4] */
static inline void qn_grid3_decode(float scale, uint16_t point, const uint8_t *magnitude, unsigned signs, float *out)
{
    for (int j = 0; j < 4; j++) {
        const float w = scale * (float)magnitude[point >> 4 * j & 7];
        out[j] = signs >> j & 1 ? -w : w;
    }
}

/** Eight weights of a point of IQ1: scale * (value + shift), values -1, 0, 1. @param out [8] */
static inline void qn_grid1_decode(float scale, uint16_t point, float shift, float *out)
{
    for (int j = 0; j < 8; j++) out[j] = scale * ((float)((point >> 2 * j & 3) - 1) + shift);
}

#endif

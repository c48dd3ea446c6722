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

/* Below, lane j takes its field out of a word by a product that shifts the field to the top: shifts of one vector by different amounts are not
 * baseline instructions, 16-bit products are. scale * (-m) is -(scale * m), so the sign goes to the integer. */

/** Fields of 2 bits: field j of a point at bits 2j. @param code [8] */
static inline void qn_grid_codes2(uint16_t point, int16_t *code)
{
    static const uint16_t up[8] = { 1 << 14, 1 << 12, 1 << 10, 1 << 8, 1 << 6, 1 << 4, 1 << 2, 1 };
    for (int j = 0; j < 8; j++) code[j] = (int16_t)((uint16_t)(point * up[j]) >> 14);
}

/** Weights scale * magnitude, minus where the sign's bit is set. @param magnitude [8] @param out [8] */
static inline void qn_grid_signed(float scale, const int16_t *magnitude, unsigned signs, float *out)
{
    static const uint16_t up[8] = { 1 << 15, 1 << 14, 1 << 13, 1 << 12, 1 << 11, 1 << 10, 1 << 9, 1 << 8 };
    int16_t value[8];
    for (int j = 0; j < 8; j++) {
        const int16_t minus = (int16_t)((int16_t)(uint16_t)((uint16_t)signs * up[j]) >> 15); /* 0 or -1 */
        value[j] = (int16_t)((magnitude[j] ^ minus) - minus);
    }
    for (int j = 0; j < 8; j++) out[j] = scale * (float)value[j];
}

/** Eight weights of a point of IQ2: magnitudes 8, 25, 43 of codes 0 .. 2. @param out [8] */
static inline void qn_grid2_decode(float scale, uint16_t point, unsigned signs, float *out)
{
    int16_t m[8];
    qn_grid_codes2(point, m);
    for (int j = 0; j < 8; j++) m[j] = (int16_t)(8 + 17 * m[j] + (m[j] >> 1));
    qn_grid_signed(scale, m, signs, out);
}

/** Eight weights of two points of IQ3: magnitudes first + step * code, plus `last` for code 7. @param out [8] */
static inline void qn_grid3_decode(float scale, uint16_t a, uint16_t b, const int first, const int step, const int last, unsigned signs, float *out)
{
    static const uint16_t up[8] = { 1 << 13, 1 << 9, 1 << 5, 1 << 1, 1 << 13, 1 << 9, 1 << 5, 1 << 1 };
    int16_t m[8];
    for (int j = 0; j < 8; j++) {
        const int16_t code = (int16_t)((uint16_t)((j < 4 ? a : b) * up[j]) >> 13);
        m[j] = (int16_t)(first + step * code + ((code + 1) >> 3) * last);
    }
    qn_grid_signed(scale, m, signs, out);
}

/** Eight weights of a point of IQ1: scale * (value + shift), values -1, 0, 1. @param out [8] */
static inline void qn_grid1_decode(float scale, uint16_t point, float shift, float *out)
{
    int16_t code[8];
    qn_grid_codes2(point, code);
    for (int j = 0; j < 8; j++) out[j] = scale * ((float)(code[j] - 1) + shift);
}

#endif

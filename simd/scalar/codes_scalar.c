/* Between the codes of a file's block and the lines and planes of a panel. */
#include "simd/scalar/scalar.h"

void qn_nibbles_put(const uint8_t *code, int32_t r, qn_line *q)
{
    for (int32_t g = 0; g < 4; g++) {
        uint32_t lane = 0;
        for (int32_t j = 0; j < 4; j++) {
            lane |= (uint32_t)(code[8 * g + 2 * j] & 15) << (4 * j);
            lane |= (uint32_t)(code[8 * g + 2 * j + 1] & 15) << (16 + 4 * j);
        }
        q[g][r] = lane;
    }
}

void qn_nibbles_get(const qn_line *q, int32_t r, uint8_t *code)
{
    for (int32_t g = 0; g < 4; g++) {
        for (int32_t j = 0; j < 4; j++) {
            code[8 * g + 2 * j] = q[g][r] >> (4 * j) & 15;
            code[8 * g + 2 * j + 1] = q[g][r] >> (16 + 4 * j) & 15;
        }
    }
}

void qn_plane1_put(const uint8_t *bits, int32_t r, uint32_t *h)
{
    uint32_t lane = 0;
    for (int32_t p = 0; p < 16; p++) lane |= (uint32_t)bits[2 * p] << p | (uint32_t)bits[2 * p + 1] << (16 + p);
    h[r] = lane;
}

uint32_t qn_plane1_get(const uint32_t *h, int32_t r, int32_t i)
{
    return h[r] >> (i / 2 + i % 2 * 16) & 1;
}

void qn_codes4(const uint8_t *qs, uint8_t *code)
{
    for (int32_t i = 0; i < 16; i++) {
        code[i] = qs[i] & 15;
        code[i + 16] = qs[i] >> 4;
    }
}

void qn_codes5(const uint8_t *qh, const uint8_t *qs, uint8_t *code)
{
    qn_codes4(qs, code);
    for (int32_t i = 0; i < 32; i++) code[i] |= (uint8_t)((qh[i / 8] >> (i % 8) & 1) << 4);
}

void qn_scale_min_k4(const uint8_t *scales, int32_t j, uint8_t *sc, uint8_t *mn)
{
    if (j < 4) {
        *sc = scales[j] & 63;
        *mn = scales[j + 4] & 63;
    } else {
        *sc = (uint8_t)((scales[j + 4] & 15) | scales[j - 4] >> 6 << 4);
        *mn = (uint8_t)(scales[j + 4] >> 4 | scales[j] >> 6 << 4);
    }
}

/* Activations as two signed bytes, q = 256 * hi + lo: of 8 columns the high bytes in the order 0 4 1 5 2 6 3 7, then the low ones. */
#include "simd/dotprod/level_dotprod.h"

void qn_split_a16_dotprod(const int16_t *q, int64_t n_blocks, int8_t *planes)
{
    static const uint8_t order[16] = { 0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15 };
    const uint8x16_t turn = vld1q_u8(order);
    for (int64_t i = 0; i < n_blocks * QN_ACT_BLOCK; i += 8) {
        const int16x8_t v = vld1q_s16(q + i);
        const int8x16_t bytes = vcombine_s8(vrshrn_n_s16(v, 8), vmovn_s16(v)); /* rounded: lo is in -128 .. 127 */
        vst1q_s8(planes + 2 * i, vqtbl1q_s8(bytes, turn));
    }
}

/**
 * P16 panels: 16 rows of weights interleaved so that one 32-bit lane is one row. The same bytes serve every level.
 *
 * A "line" holds 16 rows side by side, 64 bytes: lane r belongs to row r. 4-bit codes: a line is 8 weights of each row,
 *
 *     bit    0     4     8     12    16    20    24    28    32
 *     lane | k0  | k2  | k4  | k6  | k1  | k3  | k5  | k7  |        (x >> 4j) & 0x000f000f = the int16 pair (k 2j, k 2j + 1)
 *
 * which is what vpmaddwd, vpdpwssd and smlal want, and in bytes the order 0 2 1 3 of byte kernels. Planes of high bits cover 32 weights: pair p
 * (weights 2p, 2p + 1) has its bits at n p and 16 + n p, for n bits a weight: 16 pairs of 1 bit in one line, 8 pairs of 2 bits in each of two.
 * 8-bit codes: a line is 4 weights, bytes k0 k2 k1 k3: the high bytes of the 16-bit halves are (k2, k3), the low ones (k0, k1).
 *
 * Formats with one 32-byte row of scales come in units of two blocks, so that lines never straddle cache lines; an odd last
 * block leaves half a unit of zeros.
 */
#ifndef QN_SIMD_PANEL_H
#define QN_SIMD_PANEL_H

#include "simd/kernels.h"

typedef uint32_t qn_line[QN_PANEL];   /* one lane a row   */
typedef uint16_t qn_halves[QN_PANEL]; /* one f16 a row    */

/** 64 weights of 16 rows: value = d * (code - 8). */
typedef struct qn_panel_q4_0 {
    qn_halves d[2];
    qn_line q[2][4];
} qn_panel_q4_0;

/** 32 weights: value = d * code + m. */
typedef struct qn_panel_q4_1 {
    qn_halves d, m;
    qn_line q[4];
} qn_panel_q4_1;

/** 64 weights: value = d * (code - 16). The plane holds the inverted high bit, so that low - 16 * plane is the signed code. */
typedef struct qn_panel_q5_0 {
    qn_halves d[2];
    struct {
        qn_line q[4], h;
    } b[2];
} qn_panel_q5_0;

/** 32 weights: value = d * code + m. */
typedef struct qn_panel_q5_1 {
    qn_halves d, m;
    qn_line q[4], h;
} qn_panel_q5_1;

/** 64 weights: value = d * code. */
typedef struct qn_panel_q8_0 {
    qn_halves d[2];
    qn_line q[2][8];
} qn_panel_q8_0;

/** 256 weights in 8 sub-blocks of 32: value = (d * sc) * code - dmin * mn. */
typedef struct qn_panel_q4_k {
    qn_halves d, dmin;
    uint8_t sc[8][QN_PANEL], mn[8][QN_PANEL];
    qn_line q[8][4];
} qn_panel_q4_k;

typedef struct qn_panel_q5_k {
    qn_halves d, dmin;
    uint8_t sc[8][QN_PANEL], mn[8][QN_PANEL];
    struct {
        qn_line q[4], h;
    } b[8];
} qn_panel_q5_k;

/** 256 weights in 16 sub-blocks of 16: value = (d * sc) * (code - 32). */
typedef struct qn_panel_q6_k {
    qn_halves d, zero;
    int8_t sc[16][QN_PANEL];
    struct {
        qn_line q[4], h[2];
    } b[8];
} qn_panel_q6_k;

_Static_assert(sizeof(qn_panel_q4_0) == 9 * 64, "two blocks");
_Static_assert(sizeof(qn_panel_q4_1) == 5 * 64, "one block");
_Static_assert(sizeof(qn_panel_q5_0) == 11 * 64, "two blocks");
_Static_assert(sizeof(qn_panel_q5_1) == 6 * 64, "one block");
_Static_assert(sizeof(qn_panel_q8_0) == 17 * 64, "two blocks");
_Static_assert(sizeof(qn_panel_q4_k) == 37 * 64, "one super-block");
_Static_assert(sizeof(qn_panel_q5_k) == 45 * 64, "one super-block");
_Static_assert(sizeof(qn_panel_q6_k) == 53 * 64, "one super-block");

#endif

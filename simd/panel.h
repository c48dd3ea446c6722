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
 * 2-bit codes are two such lines for 32 weights. 3-bit codes are three: pairs 5i .. 5i + 4 have bits 3j and 16 + 3j of line i, and what is left
 * of the lines is pair 15, line i with its bits i at 15 and 31. So a pair costs a shift and a mask at every width from 2 to 4 bits.
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

/** 256 weights in 16 sub-blocks of 16: value = (d * scale) * code - dmin * min. Byte r of s[k]: scale (low) and minimum of sub-block k. */
typedef struct qn_panel_q2_k {
    qn_halves d, dmin;
    uint8_t s[16][QN_PANEL];
    qn_line q[8][2];
} qn_panel_q2_k;

/** 256 weights in 16 sub-blocks of 16: value = (d * (scale - 32)) * (code - 4). Sub-block 2b + i: bits 0-3 of its scale are nibble i of byte r of
 *  sl[b], bits 4-5 are bits 4 (b % 2) + 2 i, + 1 of sh[b / 2]. 1.8 % more than the file. */
typedef struct qn_panel_q3_k {
    qn_halves d, zero;
    uint8_t sl[8][QN_PANEL], sh[4][QN_PANEL];
    qn_line q[8][3];
} qn_panel_q3_k;

/** 64 weights: value = d * level[code]. */
typedef struct qn_panel_iq4_nl {
    qn_halves d[2];
    qn_line q[2][4];
} qn_panel_iq4_nl;

/** 256 weights in 8 sub-blocks of 32: value = (d * (scale - 32)) * level[code]. Bits 0-3 of scale b are nibble b % 2 of byte r of sl[b / 2],
 *  bits 4-5 are bits 2 (b % 4), + 1 of sh[b / 4]. */
typedef struct qn_panel_iq4_xs {
    qn_halves d;
    uint8_t sh[2][QN_PANEL], sl[4][QN_PANEL];
    qn_line q[8][4];
} qn_panel_iq4_xs;

/** 128 weights in 4 blocks of 32: value = 2^(e - 128) * doubled fp4[code]. */
typedef struct qn_panel_mxfp4 {
    uint8_t e[4][QN_PANEL];
    qn_line q[4][4];
} qn_panel_mxfp4;

_Static_assert(sizeof(qn_panel_q4_0) == 9 * 64, "two blocks");
_Static_assert(sizeof(qn_panel_q4_1) == 5 * 64, "one block");
_Static_assert(sizeof(qn_panel_q5_0) == 11 * 64, "two blocks");
_Static_assert(sizeof(qn_panel_q5_1) == 6 * 64, "one block");
_Static_assert(sizeof(qn_panel_q8_0) == 17 * 64, "two blocks");
_Static_assert(sizeof(qn_panel_q4_k) == 37 * 64, "one super-block");
_Static_assert(sizeof(qn_panel_q5_k) == 45 * 64, "one super-block");
_Static_assert(sizeof(qn_panel_q6_k) == 53 * 64, "one super-block");
_Static_assert(sizeof(qn_panel_q2_k) == 21 * 64, "one super-block");
_Static_assert(sizeof(qn_panel_q3_k) == 28 * 64, "one super-block");
_Static_assert(sizeof(qn_panel_iq4_nl) == 9 * 64, "two blocks");
_Static_assert(sizeof(qn_panel_iq4_xs) == 34 * 64, "one super-block");
_Static_assert(sizeof(qn_panel_mxfp4) == 17 * 64, "four blocks");

/* ---- the formats above, for the tables of levels ---- */

/** X(name in files, name in functions, isa) of each quantised format that has panels. */
#define QN_PANEL_FORMATS(X, isa)                                                                                                              \
    X("Q4_0", q4_0, isa) X("Q4_1", q4_1, isa) X("Q5_0", q5_0, isa) X("Q5_1", q5_1, isa) X("Q8_0", q8_0, isa) \
    X("Q2_K", q2_k, isa) X("Q3_K", q3_k, isa) X("Q4_K", q4_k, isa) X("Q5_K", q5_k, isa) X("Q6_K", q6_k, isa) \
    X("IQ4_NL", iq4_nl, isa) X("IQ4_XS", iq4_xs, isa) X("MXFP4", mxfp4, isa)

/* The products of one format at one level: `run` and `run8` of its row. */
#define QN_PRODUCTS_DECLARE(name, id, isa)                                                                                                    \
    void qn_matmul_##id##_##isa(const qn_matmul_args *a);                                                                                     \
    void qn_matmul8_##id##_##isa(const qn_matmul_args *a);
#define QN_PRODUCTS_SET(name, id, isa) qn_kernels_row_set(k, name, #isa, qn_matmul_##id##_##isa, qn_matmul8_##id##_##isa);

/** Declares the products of a level for all formats. */
#define QN_DECLARE_PRODUCTS(isa) QN_PANEL_FORMATS(QN_PRODUCTS_DECLARE, isa)
/** Puts them into the table `k`. */
#define QN_SET_PRODUCTS(isa) QN_PANEL_FORMATS(QN_PRODUCTS_SET, isa)

#endif

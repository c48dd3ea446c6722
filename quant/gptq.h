/**
 * GPTQ (Frantar, Ashkboos, Hoefler, Alistarh 2022): columns of a matrix are rounded one after another, and the error of each is made good,
 * as far as the inputs' correlations allow, by the columns that are still to come.
 *
 * With H = X^T X of the inputs and U the upper Cholesky factor of its inverse (H^-1 = U^T U), column j rounded from w to q moves column
 * k > j by -(w - q) U[j][k] / U[j][j]. Here that is done column by column from the left: column k gathers what all before it have left.
 *
 * The grid that is rounded to is that of the file format: a block's scales are searched by the format's own encoder when its first column
 * comes (in other orders: beforehand), then they are fixed and its codes follow.
 */
#ifndef QN_QUANT_GPTQ_H
#define QN_QUANT_GPTQ_H

#include "quant/quant.h"

/** Rows that are worked on together. */
enum { QN_GPTQ_ROWS = 16 };

/** What all rows of a matrix share. */
typedef struct qn_gptq_matrix {
    const qn_fmt *fmt;       /* has a grid                                                   */
    int64_t n_cols;          /* a multiple of the format's block                             */
    const float *carry;      /* [n_cols][n_cols] row p, entry o < p: U[o][p] / U[o][o]       */
    const float *importance; /* [n_cols] of columns, for the search of scales                */
    const float *gram;       /* [n_cols][n_cols] H, damped: codes are looked at once more when all are chosen. NULL: they are not */
    const int32_t *order;    /* [n_cols] column that comes p-th (p also indexes `carry`); NULL: as they lie */
} qn_gptq_matrix;

/** Floats of memory that a call needs. */
size_t qn_gptq_floats(const qn_gptq_matrix *m);

/**
 * Quantise up to 16 rows.
 * @param w          [n_rows][n_cols] as they are
 * @param n_rows     1 .. QN_GPTQ_ROWS
 * @param memory     [qn_gptq_floats]
 * @param out        [n_rows] rows of row_bytes in the file's format
 */
void qn_gptq_rows(const qn_gptq_matrix *m, const float *w, int64_t n_rows, float *memory, uint8_t *out, size_t row_bytes);

#endif

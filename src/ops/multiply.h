/* Panels of a matrix times rows: what all stages of products share. */
#ifndef QN_OPS_MULTIPLY_H
#define QN_OPS_MULTIPLY_H

#include "src/ops/exec.h"

/** Results go through a tile of floats that stays in the second-level cache, and what follows the product (bias, activation, residual) is done
 *  there: so many panels of the output for n rows. */
int64_t qn_tile_panels(int32_t n_rows);

/**
 * Panels [begin, end) of a part of w times n_rows rows.
 * @param bias  [w->n_rows] of the part, or NULL
 * @param out   [n_rows], one every out_stride floats: the panels' outputs
 * @return outputs of a row
 */
int64_t qn_multiply(const qn_exec *x, const qn_weight *w, int32_t part, int64_t begin, int64_t end, const qn_act *act, int32_t n_rows,
                    const float *bias, int32_t i_thread, float *out, int64_t out_stride);

#endif

/* Importance data in the form that encoders want. */
#ifndef QN_CONVERT_IMPORTANCE_H
#define QN_CONVERT_IMPORTANCE_H

#include "src/base/err.h"

/** Is there data for this tensor, and has it its shape? `im` may be NULL. @return QN_ERR_NOT_FOUND, without a sentence; QN_ERR_FORMAT: another shape */
qn_status qn_importance_check(const qn_imatrix *im, const qn_tensor_info *t, qn_err *err);

/**
 * Weights of the squared error, one a column of each matrix: means of the squared inputs over the matrix's mean of them, none below FLOOR. The
 * floor keeps a column that the text never reached from being free to take any value; a matrix it never reached gets equal weights.
 * @param out  [dims[2] * dims[3]][dims[0]]
 */
void qn_importance_weights(const qn_imatrix *im, const qn_tensor_info *t, float *out);

#endif

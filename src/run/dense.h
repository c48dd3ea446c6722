/* The matrices behind the pooling. */
#ifndef QN_RUN_DENSE_H
#define QN_RUN_DENSE_H

#include "src/run/engine.h"

/**
 * A pooled vector through the model's matrices, where it has them, as the stages of a step would take it. The engine's lock must be free.
 * @param x  [n_embd], in place
 * @return QN_ERR_NOMEM
 */
qn_status qn_dense_layers(qn_engine *e, float *x, qn_err *err);

#endif

/* The classifier behind a pooled vector: labels of a text, or how well a document answers a query. */
#ifndef QN_RUN_CLASSIFY_H
#define QN_RUN_CLASSIFY_H

#include "src/run/engine.h"

/** How the vectors of a text become the one that the classifier reads. */
qn_pooling qn_rank_pooling(const qn_net *net);

/**
 * @param x    [n_embd]
 * @param out  [n_labels]
 * @return QN_ERR_NOMEM
 */
qn_status qn_rank_scores(const qn_engine *e, const float *x, float *out, qn_err *err);

#endif

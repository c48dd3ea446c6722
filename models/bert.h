/* What BERT and its kin share. */
#ifndef QN_BERT_H
#define QN_BERT_H

#include "models/model.h"

/** All positions see each other, norms are of the residual stream behind each half, and one stands behind the embedding. */
#define QN_F_OF_BERT                                                                                                                                   \
    (QN_F_LAYER_NORM | QN_F_NORM_BIAS | QN_F_NO_PRE_NORM | QN_F_NORM_AFTER | QN_F_EMBED_NORM | QN_F_TIED | QN_F_ENCODER | QN_F_TOKEN_TYPES)

#endif

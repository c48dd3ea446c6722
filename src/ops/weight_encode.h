/* Weights that get another format than their file has. */
#ifndef QN_OPS_WEIGHT_ENCODE_H
#define QN_OPS_WEIGHT_ENCODE_H

#include "simd/kernels.h"
#include "src/ops/weight.h"

/** Describe the same matrices in another format, whose blocks divide the rows. @return false when the size does not fit */
bool qn_weight_describe_in(qn_weight *w, const qn_fmt *fmt);
/**
 * qn_weight_pack for a tensor that the file has in format `from`: rows are decoded, encoded in w->fmt, and packed.
 * @return QN_ERR_NOMEM
 */
qn_status qn_weight_encode(const qn_weight *w, const qn_fmt *from, const uint8_t *bytes, int64_t begin, int64_t end, const qn_kernels *k, qn_pool *pool,
                           qn_err *err);

/** Describe the turned matrices of the same rows of the file, in float32, so that turning loses nothing. @return false when the size does not fit */
bool qn_weight_turn(qn_weight *w);
/** qn_weight_pack of all parts of a turned weight. @return QN_ERR_NOMEM */
qn_status qn_weight_encode_turned(const qn_weight *w, const qn_fmt *from, const uint8_t *bytes, const qn_kernels *k, qn_pool *pool, qn_err *err);

#endif

/* Activations of rows, and gated units (Shazeer 2020). */
#ifndef QN_OPS_GLU_H
#define QN_OPS_GLU_H

#include "simd/kernels.h"
#include "src/ops/plan.h"

/** out = act(x); out may be x. */
void qn_unary_row(const qn_kernels *k, qn_unary act, const float *x, int64_t n, float *out);
/** out = act(gate) * up. @param gate [n], overwritten  @param out [n], may be gate */
void qn_glu_row(const qn_kernels *k, qn_unary act, float *gate, const float *up, int64_t n, float *out);
/** out = min(silu(gate), most) * up, up kept within -most and most. The same buffers; up is overwritten. */
void qn_glu_limited_row(const qn_kernels *k, float most, float *gate, float *up, int64_t n, float *out);

#endif

/**
 * Attention over parts of a row's positions, joined (Milakov and Gimelshein 2018).
 *
 * A row's positions are cut into parts of QN_ATTN_PART absolute positions, whoever computes them and wherever a prompt was cut.
 * Each part gives (m, l, o): largest score, sum of exp(score - m), sum of exp(score - m) * value. Parts join ascending, so the
 * sums are the same for every number of threads: m' = max(M, m), a = exp(M - m'), b = exp(m - m'):   L = L * a + l * b,   O[d] =
 * O[d] * a + o[d] * b     (each operation rounded) A sink joins last, as a part without a value: o = 0, l = 1, m = sink. The
 * result is O[d] / L.
 */
#ifndef QN_OPS_ATTN_JOIN_H
#define QN_OPS_ATTN_JOIN_H

#include "simd/kernels.h"

enum { QN_ATTN_PART = 256 };

/** Join a later part to what has been joined so far. @param o  [n] of the later part; NULL: zeros */
void qn_attn_join(const qn_kernels *k, float *m_all, float *l_all, float *o_all, float m, float l, const float *o, int32_t n);
/** out[d] = o[d] / l; out may be o. */
void qn_attn_finish(float l, const float *o, int32_t n, float *out);

#endif

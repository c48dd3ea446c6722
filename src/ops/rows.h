/* The rows that matrices read, in the forms that they want. */
#ifndef QN_OPS_ROWS_H
#define QN_OPS_ROWS_H

#include "src/ops/placer.h"
#include "src/ops/plan.h"

/** Buffers of normed rows: float32, integers and their bytes (simd/kernels.h). */
typedef struct qn_rows {
    float *x;                 /* [n][x_stride]                                                */
    int16_t *q;               /* [n][stride] A16                                              */
    int8_t *q8;               /* [n][stride] A8: in the place of q, of which there is one or the other */
    int8_t *planes;           /* [n][stride / 32][split_bytes], where the level reads them    */
    float *d, *s;             /* [n][stride / 32]                                             */
    int64_t x_stride, stride; /* multiples of 32                                             */
} qn_rows;

/** Up to so many rows every thread makes all of them for itself: norming 2048 floats takes less time than a barrier. */
enum { QN_OWN_ROWS = 4 };

struct qn_act;

/** One row through a norm, or as it is where that is NONE; out may be in. */
void qn_norm_row(const qn_exec *x, const qn_norm *n, const float *in, int64_t width, float *out);

/** Row i of a residual stream that a post-norm moves. @param out  [in->width] */
void qn_rows_moved(const qn_exec *x, const qn_input *in, int32_t i, float *out);

/** @param width  widest row that is quantised  @param norm_width  widest of x; 0: none */
void qn_rows_place(qn_placer *p, qn_rows *r, size_t n_rows, int64_t width, int64_t norm_width);
/** Quantise a row into the i-th of `to`. */
void qn_rows_quantize(const qn_exec *x, const float *row, int64_t width, const qn_rows *to, int64_t i);
/** What kernels read of rows from the i-th on. @param floats  [..][stride] the rows themselves, from the first on */
struct qn_act qn_rows_act(const qn_exec *x, const qn_rows *r, int64_t i, const float *floats, int64_t stride);
/** The same of what is there already. */
struct qn_act qn_act_from(const qn_exec *x, const struct qn_act *act, int64_t i);

/**
 * Make the rows of a stage. Called by every thread; when it returns, all rows are there (a barrier stands inside where threads
 * make them for each other).
 * @return what kernels read; valid until the thread's next call
 */
struct qn_act qn_rows_make(const qn_exec *x, const qn_stage *s, const qn_input *in, int32_t i_thread, int32_t n_threads);

#endif

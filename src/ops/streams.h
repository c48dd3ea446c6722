/**
 * Stages of models with several residual streams (AltUp; Baykal et al. 2023, "Alternating Updates for Efficient Transformers"), and of what goes
 * with them: a residual that is learned (LAuReL; Menghani et al. 2024) and a row for each token and layer (Gemma Team 2025, Gemma 3n).
 *
 * Register U holds a token's streams side by side, F what a layer predicts of them. A block works on one stream alone, the active one, in the register of
 * the residual stream; the others follow it by coefficients that a router of the token chooses.
 *
 * Of a few rows every thread has its columns, of many its rows (src/ops/rows.h).
 */
#ifndef QN_OPS_STREAMS_H
#define QN_OPS_STREAMS_H

#include "src/ops/reg.h"

enum { QN_MAX_STREAMS = 8 };

/** Streams 1 .. n - 1 are matrices times the residual stream; here they get its magnitude, and stream 0 becomes a copy of it. At the end, the
 *  other way round: F holds matrices times the streams 1 .. n - 1, and the residual stream becomes the mean of stream 0 and these at its magnitude. */
typedef struct qn_streams {
    int32_t n, i_active;
    int64_t width;           /* of a stream                                                  */
    qn_reg x;                /* where the residual stream is                                 */
} qn_streams;

/** A token's coefficients: c = tanh(router norm(row) / width), [n]; then `mix` times c. */
typedef struct qn_stream_router {
    qn_norm norm;
    const float *router;     /* [n][width]                                                   */
    const float *mix;        /* [n_mixed][n]                                                 */
} qn_stream_router;

/** Predict: F_j = U_j + sum over i of m[j][i] U_i, m [n][n] routed by the active stream, whose prediction is where the block begins.
 *  Correct: with y = moved residual stream, U_j = F_j + (1 + m[j]) (y - F_active), m [n] routed by y; the active one times `scale` is the residual stream. */
typedef struct qn_stream_step {
    qn_streams of;
    qn_stream_router by;
    qn_input in;             /* of a correction: the residual stream, moved by a post-norm   */
    const float *scale;      /* [width] or NULL                                              */
} qn_stream_step;

/** Streams 1 .. n - 1 += norm(T). */
typedef struct qn_stream_spread {
    qn_streams to;
    qn_norm norm;
} qn_stream_spread;

/** x = own(x) + post(from), rows of `width`; where it keeps what is there, plus x. */
typedef struct qn_augment_args {
    qn_reg x, from;
    qn_norm own, post;
    int64_t width;
    bool keeps;
} qn_augment_args;

/** Rows of layers: register P holds a projection of the embedding, n_layer times `width`;
 *  P = (norm(P * projection_scale) + table row * table_scale) * scale. */
typedef struct qn_layer_rows_args {
    const struct qn_weight *table; /* stays in the file                                      */
    int32_t n_layer;
    int64_t width;
    qn_norm norm;            /* of a layer's part                                            */
    float projection_scale, table_scale, scale;
} qn_layer_rows_args;

#endif

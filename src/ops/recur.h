/**
 * Stages of layers whose memory of the past is a state of fixed size (simd/kernels.h has what they compute).
 *
 * All that a layer keeps of a timeline lies in one piece of qn_kv_state, first the last inputs of its convolution, [n_taps - 1][n_channels], then from
 * a multiple of 16 floats on what its scan keeps. Tokens of a timeline are taken one by one, so that a prompt's cuts change no bit.
 * Threads share channels or heads.
 */
#ifndef QN_OPS_RECUR_H
#define QN_OPS_RECUR_H

#include "src/ops/reg.h"

enum { QN_MAX_TAPS = 16, QN_MAX_STATE = 1024 };

/** Columns of a register, from `at` on. */
typedef struct qn_cols {
    qn_reg reg;
    int64_t at;
} qn_cols;

/** A convolution of each channel along the tokens. */
typedef struct qn_conv_stage_args {
    qn_cols in, out;         /* [n_channels] each; different registers                       */
    int64_t n_channels;
    int32_t n_taps;          /* tokens it sees, the present one included                     */
    const float *w;          /* [n_taps][n_channels], oldest first                           */
    const float *bias;       /* [n_channels] or NULL                                         */
    bool silu;
    bool gated;              /* inputs are multiplied by the columns at `before`, in place, results by those at `after` */
    qn_cols before, after;
    int32_t i_state;         /* layer number                                                 */
} qn_conv_stage_args;

/** One number a head: head h has column at + h / per * step + h % per. */
typedef struct qn_head_cols {
    qn_cols first;
    int32_t per, step;
} qn_head_cols;

/**
 * Heads with a matrix as memory: linear attention with decay, with or without the delta rule. A head is a task.
 *   t = softplus(step + step_bias[h]), decay = exp(t * a[h]); rate = sigmoid(beta) with the delta rule, else t
 *   out = scan(q, k, v) + skip[h] * v, then normed, then times silu(gate)
 */
typedef struct qn_scan_stage_args {
    int32_t n_head, n_key_head;  /* query and key heads are as many, and divide n_head       */
    int32_t d_k, d_v;
    bool spread;                 /* head h has keys h / (n_head / n_key_head); else h % n_key_head */
    qn_cols q, k, v;             /* of head 0; heads lie side by side                        */
    float qk_eps;                /* above 0: q and k are divided by sqrt(their squares' sum + qk_eps), and q by sqrt(d_k) */
    bool delta;
    qn_head_cols step, beta;
    const float *step_bias, *a;  /* [n_head]                                                 */
    const float *skip;           /* [n_head] or NULL                                         */
    qn_norm norm;                /* over a head                                              */
    qn_cols gate, out;           /* [n_head][d_v]                                            */
    int32_t i_state;
    int64_t state_at;            /* floats                                                   */
} qn_scan_stage_args;

/** Channels with a few floats each as memory. out = (selective(x, softplus(dt), B, C) + skip[c] * x) * silu(gate). Sixteen channels are a task. */
typedef struct qn_selective_stage_args {
    int64_t n_channels;
    int32_t d_state;
    const float *a;              /* [d_state][n_channels]                                    */
    const float *skip;           /* [n_channels]                                             */
    qn_cols x, dt, gate, out;    /* [n_channels]; dt is overwritten                          */
    qn_cols b, c;                /* [d_state]                                                */
    qn_norm b_norm, c_norm;
    int32_t i_state;
    int64_t state_at;
} qn_selective_stage_args;

/** Rows of heads are multiplied by the sigmoid of others, or by the softplus. */
typedef struct qn_gate_stage_args {
    qn_reg at;                   /* [n_head][head_dim], of the stage's rows                  */
    qn_cols gate;                /* of head 0, of the batch's tokens                         */
    int64_t gate_stride;         /* floats between heads                                     */
    bool one_each;               /* a head has one gate, for all of its dimensions           */
    bool softplus;
    int32_t n_head, head_dim;
} qn_gate_stage_args;

/** Floats of a convolution's part of the state. */
static inline int64_t qn_conv_state_floats(int64_t n_channels, int32_t n_taps)
{
    return (n_channels * (n_taps - 1) + 15) / 16 * 16;
}

/** Floats of n columns of d rows, sixteen columns together. */
static inline int64_t qn_scan_state_floats(int64_t n_heads, int64_t n, int64_t d)
{
    return n_heads * ((n + 15) / 16 * 16) * d;
}

#endif

/* Buffers of a step, and norms of their rows. */
#ifndef QN_OPS_REG_H
#define QN_OPS_REG_H

#include <stdbool.h>
#include <stdint.h>

/** Buffers of a step, [n_tokens][width] float32. */
typedef enum qn_reg {
    QN_REG_X = 0,   /* residual stream                                                       */
    QN_REG_Y,       /* the same where a post-norm has just moved it: written while others still read X, and the other way round */
    QN_REG_Q, QN_REG_K, QN_REG_V,
    QN_REG_O,       /* attention's result                                                    */
    QN_REG_T,       /* a matrix's result on its way to a post-norm                           */
    QN_REG_G,       /* act(gate) * up                                                        */
    QN_REG_R,       /* a router's logits                                                     */
    QN_REG_S,       /* logit of a shared expert's own gate                                   */
    QN_REG_U,       /* residual streams side by side, where a model has several              */
    QN_REG_F,       /* ... and what a layer predicts of them                                 */
    QN_REG_P,       /* a token's rows of all layers                                          */
    QN_REG_COUNT,
} qn_reg;

typedef enum qn_norm_kind { QN_NORM_NONE = 0, QN_NORM_RMS, QN_NORM_LAYER } qn_norm_kind;
typedef struct qn_norm {
    qn_norm_kind kind;
    float eps;
    const float *w, *b;      /* [width] or NULL                                              */
    int32_t n_groups;        /* the row's equal parts, each normed alone; 0: the whole row   */
} qn_norm;

/** The rows that matrices read: pre(from), or with a post-norm pre(to), where first to = (x + post(from)) * scale. */
typedef struct qn_input {
    qn_reg from;
    qn_norm post;            /* NONE: nothing is added                                       */
    qn_reg x, to;            /* with `post`: the residual stream before and after            */
    float scale;             /* with `post`                                                  */
    qn_norm pre;             /* NONE: the rows as they are                                   */
    int64_t width;
    bool quantised;          /* some of the matrices read integers                           */
} qn_input;

#endif

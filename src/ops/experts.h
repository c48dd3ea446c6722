/**
 * Mixtures of experts (Shazeer et al. 2017; Fedus et al. 2022): of many feed-forwards a token runs the few that a router chooses for it.
 *
 * A stage of products makes the router's logits (register R). Stage "experts up" chooses, and makes act(gate) * up of each pair of a token and
 * one of its experts; stage "experts down" multiplies these, and adds a token's results up, weighted. Only chosen experts are read. Pairs are
 * numbered by ascending expert, then token: the tokens of an expert are neighbours, one product.
 *
 * One order of additions, whoever the neighbours are: a token's experts are summed by ascending number, each product rounded, times its weight,
 * rounded, plus the sum so far, rounded.
 */
#ifndef QN_OPS_EXPERTS_H
#define QN_OPS_EXPERTS_H

#include "src/ops/weight.h"

enum { QN_MAX_EXPERTS = 2048 };

/** How logits become probabilities. */
typedef enum qn_gate_kind {
    QN_GATE_SOFTMAX = 1,     /* over all experts                                             */
    QN_GATE_SIGMOID,
    QN_GATE_SOFTMAX_CHOSEN,  /* over the chosen ones alone; logits choose                    */
} qn_gate_kind;

/**
 * The choice of n_used experts of a token: those of the highest p + bias, the lower number among equals, a NaN last. With groups (DeepSeek-AI
 * 2024): of the n_groups_used groups whose two best experts have the highest sum alone. Weight: p, over the sum of the chosen ones where
 * `normalised` (a sum below 2^-14 counts as 2^-14), times scale and the expert's own factor.
 */
typedef struct qn_routing {
    int32_t n_expert, n_used;
    int32_t n_groups, n_groups_used; /* 0 or 1 group: no groups                              */
    qn_gate_kind gate;
    bool normalised;
    float scale;
    const float *logit_bias; /* [n_expert] or NULL: of the router's logits                   */
    const float *bias;       /* [n_expert] or NULL: for the choice, not for the weight       */
    const float *expert_scale; /* [n_expert] or NULL                                         */
    float logit_scale;       /* of the router's logits; 0: as they are                       */
} qn_routing;

/** Matrices of the experts, a part each. Biases: [n_expert][n_rows] or NULL. */
typedef struct qn_experts {
    qn_routing routing;
    const qn_weight *gate;   /* NULL: act(up) without a gate                                 */
    const qn_weight *up, *down;
    const float *gate_b, *up_b, *down_b;
    float most;              /* limits of qn_glu_limited_row; 0: none                        */
    bool weighs_input;       /* a weight is that of the expert's input, not of its result    */
} qn_experts;

#endif

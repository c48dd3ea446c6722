#include "models/model.h"

static const qn_expert_rules experts = { .gate = QN_GATE_SOFTMAX, .normalised = true };

extern const qn_arch qn_arch_refact;
const qn_arch qn_arch_refact = {
    .name = "refact",
    .covers = "Refact 1.6B",
    .features = QN_F_BIAS_OPTIONAL | QN_F_NO_ROPE | QN_F_ALIBI,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .others = { &qn_ff_experts },
    .experts = &experts,
    .layers = qn_layers_experts,
    .act = QN_UNARY_SILU,
};

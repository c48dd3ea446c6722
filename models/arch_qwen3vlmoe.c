#include "models/model.h"

static const qn_key_row keys[] = { { "rope.dimension_sections", QN_KEY_HOOK, 0, false, 0, 0 } };

static const qn_expert_rules experts = { .gate = QN_GATE_SOFTMAX, .normalised = true, .divides_ff = true };

/* Of text all sections of the rotated dimensions have the token's position: they are one. */
extern const qn_arch qn_arch_qwen3vlmoe;
const qn_arch qn_arch_qwen3vlmoe = {
    .name = "qwen3vlmoe",
    .covers = "Qwen 3 VL 30B A3B and 235B A22B (text)",
    .features = QN_F_QK_NORM | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense },
    .experts = &experts,
    .act = QN_UNARY_SILU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .layers = qn_layers_experts,
};

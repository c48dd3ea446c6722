#include "models/model.h"

static const qn_key_row keys[] = { { "rope.dimension_sections", QN_KEY_HOOK, 0, false, 0, 0 } };

/* Of text all sections of the rotated dimensions have the token's position: they are one. */
extern const qn_arch qn_arch_qwen3vl;
const qn_arch qn_arch_qwen3vl = {
    .name = "qwen3vl",
    .covers = "Qwen 3 VL 2B to 32B (text)",
    .features = QN_F_QK_NORM | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
};

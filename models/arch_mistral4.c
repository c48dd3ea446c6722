#include "models/deepseek.h"

extern const qn_arch qn_arch_mistral4;
const qn_arch qn_arch_mistral4 = {
    .name = "mistral4",
    .covers = "Mistral Small 4 (text)",
    .mixer = &qn_mix_latent,
    .ff = &qn_ff_experts,
    .others = { &qn_ff_dense, &qn_mix_latent_whole },
    .experts = &qn_deepseek_experts,
    .act = QN_UNARY_SILU,
    .keys = qn_deepseek_keys,
    .n_keys = QN_DEEPSEEK_KEYS,
    .layers = qn_deepseek_layers,
    .adjust = qn_deepseek_adjust,
};

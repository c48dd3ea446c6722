#include "models/model.h"

/* Llama's q and k are stored so that rotated pairs are neighbours. Touvron et al. 2023; Llama 3's frequency factors are a tensor. */
static const qn_expert_rules experts = { .gate = QN_GATE_SOFTMAX, .normalised = true };

extern const qn_arch qn_arch_llama;
const qn_arch qn_arch_llama = {
    .name = "llama",
    .covers = "Llama 1 to 3.3, SmolLM and SmolLM2, Mistral 7B, Mixtral, TinyLlama, Yi",
    .features = QN_F_BIAS_OPTIONAL,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .others = { &qn_ff_experts },
    .experts = &experts,
    .layers = qn_layers_experts,
    .act = QN_UNARY_SILU,
};

#include "models/model.h"

/* Llama whose positions see each other (BehnamGhader et al. 2024). */
extern const qn_arch qn_arch_llama_embed;
const qn_arch qn_arch_llama_embed = {
    .name = "llama-embed",
    .covers = "Llama Embed Nemotron 8B",
    .features = QN_F_BIAS_OPTIONAL | QN_F_ENCODER,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
};

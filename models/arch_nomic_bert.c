#include "models/bert.h"

/* Nussbaum et al. 2024. */
extern const qn_arch qn_arch_nomic_bert;
const qn_arch qn_arch_nomic_bert = {
    .name = "nomic-bert",
    .covers = "Nomic Embed Text 1 and 1.5, CodeRankEmbed",
    .features = QN_F_OF_BERT | QN_F_QKV_FUSED | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
};

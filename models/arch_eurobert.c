#include "models/model.h"

/* Boizard et al. 2025. */
extern const qn_arch qn_arch_eurobert;
const qn_arch qn_arch_eurobert = {
    .name = "eurobert",
    .covers = "EuroBERT, Jina Embeddings 5 Nano",
    .features = QN_F_ROPE_NEOX | QN_F_TIED | QN_F_ENCODER,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_SILU,
};

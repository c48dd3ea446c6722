#include "models/bert.h"

/* Sturua et al. 2024: XLM-RoBERTa whose positions are angles. A task's low-rank matrices are files of their own, which the base model works without. */
extern const qn_arch qn_arch_jina_bert_v3;
const qn_arch qn_arch_jina_bert_v3 = {
    .name = "jina-bert-v3",
    .covers = "Jina Embeddings 3 (without the matrices of tasks)",
    .features = QN_F_OF_BERT | QN_F_BIAS_OPTIONAL | QN_F_QKV_FUSED | QN_F_NO_GATE | QN_F_ROPE_NEOX,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_GELU,
};

#include "models/bert.h"

/* Devlin et al. 2019. */
extern const qn_arch qn_arch_bert;
const qn_arch qn_arch_bert = {
    .name = "bert",
    .covers = "BERT, RoBERTa, XLM-RoBERTa, BGE, E5, all-MiniLM, GTE (base), mxbai-embed, Snowflake Arctic Embed",
    .features = QN_F_OF_BERT | QN_F_QKV_BIAS | QN_F_OUT_BIAS | QN_F_FF_BIAS | QN_F_NO_GATE | QN_F_NO_ROPE | QN_F_POSITIONS,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_GELU,
};

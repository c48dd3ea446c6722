#include "models/model.h"

#include "src/format/keys.h"

/* The number of token types is a key of the tokenizer. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    int64_t n = 2;
    const qn_status s = qn_key_i64(file, "tokenizer.ggml.token_type_count", "", 1, 1 << 16, &n, err);
    net->n_types = (int32_t)n;
    return s == QN_ERR_NOT_FOUND ? QN_OK : s;
}

/* Devlin et al. 2019. */
extern const qn_arch qn_arch_bert;
const qn_arch qn_arch_bert = {
    .name = "bert",
    .covers = "BERT, BGE, E5, all-MiniLM, GTE (base), mxbai-embed, Snowflake Arctic Embed",
    .features = QN_F_QKV_BIAS | QN_F_OUT_BIAS | QN_F_FF_BIAS | QN_F_NO_GATE | QN_F_LAYER_NORM | QN_F_NORM_BIAS | QN_F_NO_PRE_NORM | QN_F_NORM_AFTER |
                QN_F_NO_ROPE | QN_F_POSITIONS | QN_F_EMBED_NORM | QN_F_TIED | QN_F_ENCODER | QN_F_TOKEN_TYPES,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_GELU,
    .adjust = adjust,
};

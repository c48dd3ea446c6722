#include "models/bert.h"

/* What a file may do in one of several ways: a gate of its own, in the rows of ffn_up, or none; norms of q and k; a second norm behind attention. */
static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    int32_t n_ff = 0;
    QN_TRY(qn_net_read_i32(net, file, "feed_forward_length", 0, 1 << 24, &n_ff, err));
    for (int32_t i = 0; i < net->n_layer; i++) {
        qn_layer *l = &net->layer[i];
        if (qn_net_has_tensor(file, "blk.%d.ffn_gate.weight", i)) l->features &= ~QN_F_GATE_UP_FUSED;
        else if (qn_net_tensor_rows(file, "blk.%d.ffn_up.weight", i) == n_ff) l->features ^= QN_F_GATE_UP_FUSED | QN_F_NO_GATE;
        if (qn_net_has_tensor(file, "blk.%d.attn_norm_2.weight", i)) l->features |= QN_F_NORM_TWICE;
    }
    return QN_OK;
}

/* Günther et al. 2023: BERT with linear position biases and gates. */
extern const qn_arch qn_arch_jina_bert_v2;
const qn_arch qn_arch_jina_bert_v2 = {
    .name = "jina-bert-v2",
    .covers = "Jina Embeddings 2 (all languages, code), Jina Reranker 1",
    .features = QN_F_OF_BERT | QN_F_BIAS_OPTIONAL | QN_F_OUT_BIAS | QN_F_GATE_UP_FUSED | QN_F_NO_ROPE | QN_F_ALIBI | QN_F_QK_NORM_WIDE |
                QN_F_QK_NORM_OPTIONAL,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_GELU,
    .layers = layers,
};

#include "models/model.h"

enum { PERIOD = 6 };

static int64_t dim_dense(const qn_net *net, const qn_layer *l) { (void)l; return net->n_dense; }

/* Behind the pooling stand two matrices, without anything between them, where the file has them. */
static const qn_tensor_row tensors[] = {
    { "dense_2.weight", QN_NET_W(dense_2), .cols = qn_dim_embd, .rows = { dim_dense } },
    { "dense_3.weight", QN_NET_W(dense_3), .cols = dim_dense, .rows = { qn_dim_embd } },
};

/* Schechter Vera et al. 2025: Gemma 3 whose positions see each other, half a window to either side where there is one. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    qn_tensor_info t;
    QN_TRY(qn_net_read_windows(net, file, PERIOD, false, err));
    QN_TRY(qn_net_local_rope(net, file, 10000, err));
    const int64_t i = qn_file_tensor_find(file, "dense_2.weight");
    const bool has_2 = qn_file_tensor_at(file, i, &t), has_3 = qn_file_tensor_find(file, "dense_3.weight") >= 0;
    if (has_2 != has_3) return qn_fail(err, QN_ERR_UNSUPPORTED, "the file has a tensor %s.weight alone; it takes both", has_2 ? "dense_2" : "dense_3");
    if (has_2 && t.dims[1] > 1 << 24) return qn_fail(err, QN_ERR_UNSUPPORTED, "tensor dense_2.weight has %lld rows", (long long)t.dims[1]);
    net->n_dense = has_2 ? (int32_t)t.dims[1] : 0;
    return QN_OK;
}

extern const qn_arch qn_arch_gemma_embedding;
const qn_arch qn_arch_gemma_embedding = {
    .name = "gemma-embedding",
    .covers = "EmbeddingGemma 300M",
    .features = QN_F_QK_NORM | QN_F_POST_NORM | QN_F_ROPE_NEOX | QN_F_EMBED_SQRT | QN_F_ENCODER | QN_F_WINDOW_AROUND,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_GELU,
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .adjust = adjust,
};

#include "models/model.h"

/* The last layers attend to keys and values of another: of the last one with keys of its own that sees as much (Brandon et al. 2024, "Cross-Layer
 * Attention"). */
static int32_t source_of(const qn_net *net, int32_t i_layer, int32_t n_own)
{
    int32_t i = n_own - 1;
    while (i >= 0 && net->layer[i].window != net->layer[i_layer].window) i--;
    return i;
}

qn_status qn_net_share_kv(qn_net *net, const qn_file *file, int32_t n_own, qn_err *err)
{
    int32_t n_shared = net->n_layer > n_own ? net->n_layer - n_own : 0;
    QN_TRY(qn_net_read_i32(net, file, "attention.shared_kv_layers", 0, net->n_layer - 1, &n_shared, err));
    n_own = net->n_layer - n_shared;
    for (int32_t i = n_own; i < net->n_layer; i++) {
        qn_layer *l = &net->layer[i];
        l->i_kv = source_of(net, i, n_own);
        l->features |= QN_F_KV_SHARED;
        if (l->i_kv < 0)
            return qn_fail(err, QN_ERR_UNSUPPORTED, "%s: the last %d layers share keys of layers before them, and none of these has the window of layer %d",
                           net->arch->name, n_shared, i);
        const qn_layer *from = &net->layer[l->i_kv];
        if (from->n_head_kv != l->n_head_kv || from->head_dim != l->head_dim || from->head_dim_v != l->head_dim_v)
            return qn_fail(err, QN_ERR_FORMAT, "layer %d has %d KV heads of %d and %d dimensions and shares those of layer %d, which has %d of %d and %d", i,
                           l->n_head_kv, l->head_dim, l->head_dim_v, l->i_kv, from->n_head_kv, from->head_dim, from->head_dim_v);
    }
    return QN_OK;
}

#include "models/model.h"

#include "src/format/keys.h"

/* Which layers of a hybrid attend, and which have a state. */

qn_status qn_layers_without_kv(qn_net *net, const qn_file *file, const qn_part *recurrent, qn_err *err)
{
    int32_t n_kv[QN_MAX_LAYERS];
    qn_status s = qn_net_read_i32s(net, file, "attention.head_count_kv", 0, 1 << 16, n_kv, net->n_layer, err);
    if (s == QN_ERR_NOT_FOUND) s = qn_net_read_i32s(net, file, "attention.head_count", 0, 1 << 16, n_kv, net->n_layer, err); /* as many as heads */
    if (s == QN_ERR_NOT_FOUND) return QN_OK;
    QN_TRY(s);
    for (int32_t i = 0; i < net->n_layer; i++)
        if (n_kv[i] == 0) net->layer[i].mixer = recurrent;
    return QN_OK;
}

qn_status qn_layers_of_halves(qn_net *net, const qn_file *file, const qn_part *recurrent, const qn_part *ff, qn_err *err)
{
    int32_t n_ff[QN_MAX_LAYERS];
    QN_TRY(qn_layers_without_kv(net, file, recurrent, err));
    const qn_status s = qn_net_read_i32s(net, file, "feed_forward_length", 0, 1 << 24, n_ff, net->n_layer, err);
    if (s == QN_ERR_NOT_FOUND) return qn_fail(err, QN_ERR_FORMAT, "key %s.feed_forward_length is missing", net->arch->name);
    QN_TRY(s);
    for (int32_t i = 0; i < net->n_layer; i++) {
        qn_layer *l = &net->layer[i];
        l->ff = n_ff[i] ? ff : NULL;
        if (n_ff[i]) l->mixer = NULL;
    }
    return QN_OK;
}

qn_status qn_layers_interleaved(qn_net *net, const qn_file *file, const qn_part *recurrent, qn_err *err)
{
    int32_t is_recurrent[QN_MAX_LAYERS], interval = 4;
    QN_TRY(qn_net_read_i32(net, file, "full_attention_interval", 1, QN_MAX_LAYERS, &interval, err));
    const qn_status s = qn_net_read_i32s(net, file, "attention.recurrent_layers", 0, 1, is_recurrent, net->n_layer, err);
    if (s != QN_ERR_NOT_FOUND) QN_TRY(s);
    for (int32_t i = 0; i < net->n_layer; i++)
        if (s == QN_OK ? is_recurrent[i] : (i + 1) % interval != 0) net->layer[i].mixer = recurrent;
    return QN_OK;
}

#include "models/model.h"

#include <stdio.h>

/* A layer sees its window alone, or everything. */
static void set_windows(qn_net *net, const int32_t *is_windowed)
{
    for (int32_t i = 0; i < net->n_layer; i++)
        if (!is_windowed[i]) net->layer[i].window = 0;
}

qn_status qn_net_read_windows(qn_net *net, const qn_file *file, int32_t period, bool dense_first, qn_err *err)
{
    static const char key[] = "attention.sliding_window_pattern";
    int32_t v[QN_MAX_LAYERS], n = 0;
    qn_value value;
    char name[128];
    snprintf(name, sizeof name, "%s.%s", net->arch->name, key);
    if (qn_file_key(file, name, &value) && value.type == QN_V_ARRAY) {
        QN_TRY(qn_net_read_i32s(net, file, key, 0, 1, v, net->n_layer, err));
    } else {
        n = period;
        QN_TRY(qn_net_read_i32(net, file, key, 0, QN_MAX_LAYERS, &n, err));
        for (int32_t i = 0; i < net->n_layer; i++) v[i] = n && i % n != (dense_first ? 0 : n - 1);
    }
    set_windows(net, v);
    return QN_OK;
}

qn_status qn_net_windowed_rope(qn_net *net, const qn_file *file, float base, qn_err *err)
{
    QN_TRY(qn_net_read_f32(net, file, "rope.freq_base_swa", &base, err));
    if (!(base > 0)) return qn_fail(err, QN_ERR_FORMAT, "%s.rope.freq_base_swa is %g; it must be above 0", net->arch->name, (double)base);
    net->rope[1] = net->rope[0];
    net->rope[1].base = base;
    net->n_ropes = 2;
    for (int32_t i = 0; i < net->n_layer; i++)
        if (net->layer[i].window) net->layer[i].i_rope = 1;
    return QN_OK;
}

qn_status qn_net_windowed_heads(qn_net *net, const qn_file *file, qn_err *err)
{
    int32_t k = net->head_dim, v = net->layer[0].head_dim_v, n_rot;
    QN_TRY(qn_net_read_i32(net, file, "attention.key_length_swa", 1, QN_MAX_HEAD_DIM, &k, err));
    QN_TRY(qn_net_read_i32(net, file, "attention.value_length_swa", 1, QN_MAX_HEAD_DIM, &v, err));
    for (int32_t i = 0; i < net->n_layer; i++) {
        qn_layer *l = &net->layer[i];
        if (!l->window) continue;
        l->head_dim = k;
        l->head_dim_v = v;
        QN_TRY(l->mixer->check(net, l, i, err));
    }
    n_rot = k;
    QN_TRY(qn_net_read_i32(net, file, "rope.dimension_count_swa", 0, k, &n_rot, err));
    if (n_rot % 2) return qn_fail(err, QN_ERR_FORMAT, "%s.rope.dimension_count_swa is %d; it must be even", net->arch->name, n_rot);
    net->rope[1].n_rot = n_rot;
    return QN_OK;
}

qn_status qn_adjust_every_fourth_sees_all(qn_net *net, const qn_file *file, qn_err *err)
{
    enum { PERIOD = 4 };
    QN_TRY(qn_net_read_windows(net, file, PERIOD, false, err));
    for (int32_t i = 0; i < net->n_layer; i++)
        if (!net->layer[i].window) net->layer[i].i_rope = -1;
    return QN_OK;
}

qn_status qn_net_local_rope(qn_net *net, const qn_file *file, float base, qn_err *err)
{
    QN_TRY(qn_net_windowed_rope(net, file, base, err));
    net->rope[1].freq_scale = 1;
    net->rope[1].ext_factor = net->rope[1].attn_factor = 0;
    return QN_OK;
}

qn_status qn_adjust_windows_unscaled(qn_net *net, const qn_file *file, qn_err *err)
{
    enum { PERIOD = 4 };
    if (!net->layer[0].window) return QN_OK;
    QN_TRY(qn_net_read_windows(net, file, PERIOD, false, err));
    QN_TRY(qn_net_windowed_rope(net, file, (float)net->rope[0].base, err));
    net->rope[1].freq_scale = 1;
    net->rope[1].ext_factor = net->rope[1].attn_factor = 0;
    return QN_OK;
}

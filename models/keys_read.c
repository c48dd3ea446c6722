#include "models/model.h"

#include "src/format/keys.h"

#include <stdio.h>

enum { MAX_KEY = 128 };

/* "%s.<name>", as qn_key_* want it. */
static const char *pattern(char buf[MAX_KEY], const char *name)
{
    snprintf(buf, MAX_KEY, "%%s.%s", name);
    return buf;
}

/* A key's elements, or QN_ERR_NOT_FOUND when it is no array. */
static qn_status find_array(const qn_net *net, const qn_file *file, const char *name, qn_value *v)
{
    char key[MAX_KEY];
    snprintf(key, sizeof key, "%s.%s", net->arch->name, name);
    return qn_file_key(file, key, v) && v->type == QN_V_ARRAY ? QN_OK : QN_ERR_NOT_FOUND;
}

static qn_status element(const qn_net *net, const char *name, int32_t i, const qn_value *e, int64_t lo, int64_t hi, int32_t *out, qn_err *err)
{
    int64_t n;
    bool flag;
    if (qn_value_as_bool(e, &flag) == QN_OK) n = flag;
    else if (qn_value_as_i64(e, &n) != QN_OK || n < lo || n > hi)
        return qn_fail(err, QN_ERR_FORMAT, "key %s.%s: element %d is not a number from %lld to %lld", net->arch->name, name, i, (long long)lo, (long long)hi);
    *out = (int32_t)n;
    return QN_OK;
}

/* A whole number, or a flag as 0 or 1. */
static qn_status read_whole(const qn_net *net, const qn_file *file, const char *name, int64_t lo, int64_t hi, int64_t *out, qn_err *err)
{
    qn_value v;
    bool flag;
    char key[MAX_KEY];
    snprintf(key, sizeof key, "%s.%s", net->arch->name, name);
    if (!qn_file_key(file, key, &v) || qn_value_as_bool(&v, &flag) != QN_OK) return qn_key_i64(file, pattern(key, name), net->arch->name, lo, hi, out, err);
    *out = flag;
    return QN_OK;
}

qn_status qn_net_read_i32s(const qn_net *net, const qn_file *file, const char *name, int64_t lo, int64_t hi, int32_t *out, int32_t n, qn_err *err)
{
    qn_value v, e;
    if (find_array(net, file, name, &v) != QN_OK) {
        int64_t all = 0;
        QN_TRY(read_whole(net, file, name, lo, hi, &all, err));
        for (int32_t i = 0; i < n; i++) out[i] = (int32_t)all;
        return QN_OK;
    }
    if (v.count < (uint64_t)n)
        return qn_fail(err, QN_ERR_FORMAT, "key %s.%s has %llu elements; %d are due", net->arch->name, name, (unsigned long long)v.count, n);
    qn_value_iter it = qn_value_iterate(&v);
    for (int32_t i = 0; i < n && qn_value_next(&it, &e); i++) QN_TRY(element(net, name, i, &e, lo, hi, &out[i], err));
    return QN_OK;
}

qn_status qn_net_read_f32(const qn_net *net, const qn_file *file, const char *name, float *out, qn_err *err)
{
    char key[MAX_KEY];
    float v;
    const qn_status s = qn_key_f32(file, pattern(key, name), net->arch->name, &v, err);
    if (s == QN_OK) *out = v;
    return s == QN_ERR_NOT_FOUND ? QN_OK : s;
}

qn_status qn_net_read_i32(const qn_net *net, const qn_file *file, const char *name, int64_t lo, int64_t hi, int32_t *out, qn_err *err)
{
    int64_t v;
    const qn_status s = read_whole(net, file, name, lo, hi, &v, err);
    if (s == QN_OK) *out = (int32_t)v;
    return s == QN_ERR_NOT_FOUND ? QN_OK : s;
}

static qn_status read_layers(qn_net *net, const qn_file *file, const qn_key_row *k, qn_err *err)
{
    int32_t v[QN_MAX_LAYERS];
    QN_TRY(qn_net_read_i32s(net, file, k->name, k->lo, k->hi, v, net->n_layer, err));
    for (int32_t i = 0; i < net->n_layer; i++) *(int32_t *)(void *)((char *)&net->layer[i] + k->offset) = v[i];
    return QN_OK;
}

static qn_status read_key(qn_net *net, const qn_file *file, const qn_key_row *k, qn_err *err)
{
    char key[MAX_KEY];
    int64_t i;
    switch (k->kind) {
    case QN_KEY_LAYER: return read_layers(net, file, k, err);
    case QN_KEY_NET:
        QN_TRY(read_whole(net, file, k->name, k->lo, k->hi, &i, err));
        *(int32_t *)(void *)((char *)net + k->offset) = (int32_t)i;
        return QN_OK;
    case QN_KEY_FLOAT: return qn_key_f32(file, pattern(key, k->name), net->arch->name, (float *)(void *)((char *)net + k->offset), err);
    case QN_KEY_HOOK: break;
    }
    return QN_OK;
}

qn_status qn_net_read_keys(qn_net *net, const qn_file *file, const qn_key_row *rows, int32_t n, qn_err *err)
{
    for (int32_t i = 0; i < n; i++) {
        const qn_status s = read_key(net, file, &rows[i], err);
        if (s != QN_ERR_NOT_FOUND || rows[i].required) QN_TRY(s);
    }
    return QN_OK;
}

bool qn_net_has_tensor(const qn_file *file, const char *name, int32_t i_layer)
{
    char full[64];
    snprintf(full, sizeof full, name, i_layer);
    return qn_file_tensor_find(file, full) >= 0;
}

int64_t qn_net_tensor_rows(const qn_file *file, const char *name, int32_t i_layer)
{
    char full[64];
    qn_tensor_info t;
    snprintf(full, sizeof full, name, i_layer);
    const int64_t i = qn_file_tensor_find(file, full);
    return i >= 0 && qn_file_tensor_at(file, i, &t) ? t.dims[1] : 0;
}

static qn_status set_f32(const qn_value *v, const char *key, int32_t i, double lo, double hi, float *out, qn_err *err)
{
    double d;
    if (qn_value_as_f64(v, &d) != QN_OK || !(d >= lo && d < hi))
        return qn_fail(err, QN_ERR_FORMAT, "key %s: what it has of layer %d is not a number from %g to below %g", key, i, lo, hi);
    *out = (float)d;
    return QN_OK;
}

qn_status qn_net_read_layer_f32s(const qn_net *net, const qn_file *file, const char *name, double lo, double hi, float *out, qn_err *err)
{
    qn_value v, e;
    char key[MAX_KEY];
    snprintf(key, sizeof key, "%s.%s", net->arch->name, name);
    if (!qn_file_key(file, key, &v)) return QN_OK;
    const bool each = v.type == QN_V_ARRAY;
    if (each && v.count < (uint64_t)net->n_layer)
        return qn_fail(err, QN_ERR_FORMAT, "key %s has %llu elements; %d are due", key, (unsigned long long)v.count, net->n_layer);
    qn_value_iter it = qn_value_iterate(&v);
    for (int32_t i = 0; i < net->n_layer; i++) {
        if (each) (void)qn_value_next(&it, &e);
        QN_TRY(set_f32(each ? &e : &v, key, i, lo, hi, (float *)(void *)((char *)out + (size_t)i * sizeof(qn_layer)), err));
    }
    return QN_OK;
}

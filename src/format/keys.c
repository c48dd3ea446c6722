#include "src/format/keys.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { KEY_CAP = 256 };

/* "%s.block_count" and "llama" to "llama.block_count"; the rest of the pattern is taken as it is. */
static bool key_name(const char *pattern, const char *arch, char out[KEY_CAP])
{
    const char *at = strstr(pattern, "%s");
    const int n = at ? snprintf(out, KEY_CAP, "%.*s%s%s", (int)(at - pattern), pattern, arch ? arch : "", at + 2)
                     : snprintf(out, KEY_CAP, "%s", pattern);
    return n >= 0 && n < KEY_CAP;
}

static qn_status find(const qn_file *f, const char *pattern, const char *arch, char key[KEY_CAP], qn_value *v, qn_err *err)
{
    if (!key_name(pattern, arch, key)) return qn_fail(err, QN_ERR_NOT_FOUND, "key '%s' of '%.60s' is missing", pattern, arch ? arch : "");
    if (!qn_file_key(f, key, v)) return qn_fail(err, QN_ERR_NOT_FOUND, "key '%s' is missing", key);
    return QN_OK;
}

static qn_status wrong_type(const char *key, const qn_value *v, const char *want, qn_err *err)
{
    if (v->type == QN_V_ARRAY)
        return qn_fail(err, QN_ERR_TYPE, "key '%s' is an array of %s; it has to be %s", key, qn_vtype_name(v->elem), want);
    return qn_fail(err, QN_ERR_TYPE, "key '%s' has type %s; it has to be %s", key, qn_vtype_name(v->type), want);
}

qn_status qn_key_i64(const qn_file *f, const char *key_fmt, const char *arch, int64_t lo, int64_t hi, int64_t *out, qn_err *err)
{
    char key[KEY_CAP];
    qn_value v;
    int64_t i;
    QN_TRY(find(f, key_fmt, arch, key, &v, err));
    if (qn_value_as_i64(&v, &i) != QN_OK) {
        if (v.type == QN_V_U64) return qn_fail(err, QN_ERR_FORMAT, "key '%s' is above 2^63", key);
        return wrong_type(key, &v, "a whole number", err);
    }
    if (i < lo || i > hi)
        return qn_fail(err, QN_ERR_FORMAT, "key '%s' is %lld; it has to be %lld to %lld", key, (long long)i, (long long)lo, (long long)hi);
    *out = i;
    return QN_OK;
}

qn_status qn_key_f32(const qn_file *f, const char *key_fmt, const char *arch, float *out, qn_err *err)
{
    char key[KEY_CAP];
    qn_value v;
    double d;
    QN_TRY(find(f, key_fmt, arch, key, &v, err));
    if (qn_value_as_f64(&v, &d) != QN_OK) return wrong_type(key, &v, "a number", err);
    if (!isfinite(d) || fabs(d) > (double)FLT_MAX) return qn_fail(err, QN_ERR_FORMAT, "key '%s' is %g; it has to be finite", key, d);
    *out = (float)d;
    return QN_OK;
}

qn_status qn_key_bool(const qn_file *f, const char *key_fmt, const char *arch, bool *out, qn_err *err)
{
    char key[KEY_CAP];
    qn_value v;
    QN_TRY(find(f, key_fmt, arch, key, &v, err));
    return qn_value_as_bool(&v, out) == QN_OK ? QN_OK : wrong_type(key, &v, "a bool", err);
}

qn_status qn_key_str(const qn_file *f, const char *key_fmt, const char *arch, qn_str *out, qn_err *err)
{
    char key[KEY_CAP];
    qn_value v;
    QN_TRY(find(f, key_fmt, arch, key, &v, err));
    return qn_value_as_str(&v, out) == QN_OK ? QN_OK : wrong_type(key, &v, "a string", err);
}

qn_status qn_key_array(const qn_file *f, const char *key_fmt, const char *arch, qn_vtype elem, qn_value *out, qn_err *err)
{
    char key[KEY_CAP], want[32];
    qn_value v;
    QN_TRY(find(f, key_fmt, arch, key, &v, err));
    snprintf(want, sizeof want, "an array of %s", qn_vtype_name(elem));
    if (v.type != QN_V_ARRAY || v.elem != elem) return wrong_type(key, &v, want, err);
    *out = v;
    return QN_OK;
}

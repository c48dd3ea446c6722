#include "src/format/value.h"

#include <string.h>

static const struct {
    const char *name;
    int bytes;      /* of a value of fixed size; 0: none                 */
    int min_bytes;  /* that an element takes in the file at the least    */
} vtypes[] = {
    [QN_V_U8] = { "u8", 1, 1 },          [QN_V_I8] = { "i8", 1, 1 },        [QN_V_U16] = { "u16", 2, 2 },
    [QN_V_I16] = { "i16", 2, 2 },        [QN_V_U32] = { "u32", 4, 4 },      [QN_V_I32] = { "i32", 4, 4 },
    [QN_V_F32] = { "f32", 4, 4 },        [QN_V_BOOL] = { "bool", 1, 1 },    [QN_V_STRING] = { "string", 0, 8 },
    [QN_V_ARRAY] = { "array", 0, 12 },   [QN_V_U64] = { "u64", 8, 8 },      [QN_V_I64] = { "i64", 8, 8 },
    [QN_V_F64] = { "f64", 8, 8 },
};
enum { N_VTYPES = sizeof vtypes / sizeof *vtypes };

const char *qn_vtype_name(qn_vtype t)
{
    return (uint32_t)t < N_VTYPES ? vtypes[t].name : "unknown";
}

int qn_vtype_bytes(uint32_t type)
{
    return type < N_VTYPES ? vtypes[type].bytes : -1;
}

/* ---- reading ---- */

static qn_status read_value(qn_cursor *c, uint32_t type, int depth, qn_value *out, qn_err *err);

static qn_status check_bools(const uint8_t *p, uint64_t n, qn_err *err)
{
    for (uint64_t i = 0; i < n; i++)
        if (p[i] > 1) return qn_fail(err, QN_ERR_FORMAT, "a bool is stored as %d, not as 0 or 1", p[i]);
    return QN_OK;
}

static qn_status read_string(qn_cursor *c, qn_value *out, qn_err *err)
{
    const uint64_t len = qn_cursor_u64(c);
    const size_t left = qn_cursor_left(c);
    out->data = qn_cursor_take(c, len);
    out->n_bytes = (size_t)len;
    if (c->failed)
        return qn_fail(err, QN_ERR_FORMAT, "a string of %llu bytes, where the file has %zu left", (unsigned long long)len, left);
    return QN_OK;
}

static qn_status read_array(qn_cursor *c, int depth, qn_value *out, qn_err *err)
{
    const uint32_t elem = qn_cursor_u32(c);
    const uint64_t count = qn_cursor_u64(c);
    const size_t left = qn_cursor_left(c);
    if (c->failed) return qn_fail(err, QN_ERR_FORMAT, "the file ends where an array begins");
    if (elem >= N_VTYPES) return qn_fail(err, QN_ERR_FORMAT, "an array of elements of type %u, which GGUF does not have", elem);
    if (depth >= QN_VALUE_MAX_DEPTH) return qn_fail(err, QN_ERR_FORMAT, "arrays are nested deeper than %d", QN_VALUE_MAX_DEPTH);
    if (!qn_cursor_expect(c, count, (uint64_t)vtypes[elem].min_bytes))
        return qn_fail(err, QN_ERR_FORMAT, "an array of %llu elements, where the file has %zu bytes left", (unsigned long long)count, left);
    out->elem = (qn_vtype)elem;
    out->count = count;
    out->data = c->at;
    if (vtypes[elem].bytes) {
        qn_cursor_take(c, count * (uint64_t)vtypes[elem].bytes); /* expect() has shown that it is there */
        if (elem == QN_V_BOOL) QN_TRY(check_bools(out->data, count, err));
    }
    for (uint64_t i = 0; !vtypes[elem].bytes && i < count; i++) {
        qn_value ignored;
        QN_TRY(read_value(c, elem, depth + 1, &ignored, err));
    }
    out->n_bytes = (size_t)(c->at - out->data);
    return QN_OK;
}

static qn_status read_value(qn_cursor *c, uint32_t type, int depth, qn_value *out, qn_err *err)
{
    if (type >= N_VTYPES) return qn_fail(err, QN_ERR_FORMAT, "a value of type %u, which GGUF does not have", type);
    *out = (qn_value){ .type = (qn_vtype)type, .elem = (qn_vtype)type, .count = 1 };
    if (type == QN_V_STRING) return read_string(c, out, err);
    if (type == QN_V_ARRAY) return read_array(c, depth, out, err);
    out->n_bytes = (size_t)vtypes[type].bytes;
    out->data = qn_cursor_take(c, out->n_bytes);
    if (!out->data) return qn_fail(err, QN_ERR_FORMAT, "the file ends inside a value of type %s", vtypes[type].name);
    return type == QN_V_BOOL ? check_bools(out->data, 1, err) : QN_OK;
}

qn_status qn_value_read(qn_cursor *c, uint32_t type, qn_value *out, qn_err *err)
{
    return read_value(c, type, 0, out, err);
}

/* ---- scalars ---- */

/* An integer value's 64 bits, sign-extended; *is_u64 when it is beyond int64. */
static bool integer_of(const qn_value *v, int64_t *out, bool *is_big)
{
    const uint64_t u = qn_vtype_bytes((uint32_t)v->type) > 0 ? qn_load_le(v->data, (unsigned)qn_vtype_bytes((uint32_t)v->type)) : 0;
    *is_big = false;
    switch (v->type) {
    case QN_V_U8:
    case QN_V_U16:
    case QN_V_U32: *out = (int64_t)u; return true;
    case QN_V_I8: *out = (int8_t)u; return true;
    case QN_V_I16: *out = (int16_t)u; return true;
    case QN_V_I32: *out = (int32_t)u; return true;
    case QN_V_I64: *out = (int64_t)u; return true;
    case QN_V_U64:
        *is_big = u > INT64_MAX;
        *out = (int64_t)u;
        return true;
    default: return false;
    }
}

qn_status qn_value_as_i64(const qn_value *v, int64_t *out)
{
    int64_t i;
    bool is_big;
    if (!integer_of(v, &i, &is_big) || is_big) return QN_ERR_TYPE;
    *out = i;
    return QN_OK;
}

qn_status qn_value_as_f64(const qn_value *v, double *out)
{
    int64_t i;
    bool is_big;
    if (v->type == QN_V_F32) {
        float f;
        memcpy(&f, v->data, sizeof f);
        *out = (double)f;
    } else if (v->type == QN_V_F64) {
        memcpy(out, v->data, sizeof *out);
    } else {
        const int64_t exact = (int64_t)1 << 53; /* integers up to here are doubles */
        if (!integer_of(v, &i, &is_big) || is_big || i > exact || i < -exact) return QN_ERR_TYPE;
        *out = (double)i;
    }
    return QN_OK;
}

qn_status qn_value_as_bool(const qn_value *v, bool *out)
{
    if (v->type != QN_V_BOOL) return QN_ERR_TYPE;
    *out = v->data[0] != 0;
    return QN_OK;
}

qn_status qn_value_as_str(const qn_value *v, qn_str *out)
{
    if (v->type != QN_V_STRING) return QN_ERR_TYPE;
    *out = (qn_str){ (const char *)v->data, v->n_bytes };
    return QN_OK;
}

/* ---- arrays ---- */

qn_value_iter qn_value_iterate(const qn_value *array)
{
    if (array->type != QN_V_ARRAY) return (qn_value_iter){ 0 };
    return (qn_value_iter){ array->data, array->data + array->n_bytes, array->count, array->elem };
}

bool qn_value_next(qn_value_iter *it, qn_value *elem)
{
    if (!it->left) return false;
    qn_cursor c = qn_cursor_of(it->at, (size_t)(it->end - it->at));
    if (read_value(&c, (uint32_t)it->elem, 1, elem, NULL) != QN_OK) { /* only an iterator that was not made by qn_value_iterate */
        it->left = 0;
        return false;
    }
    it->at = c.at;
    it->left--;
    return true;
}

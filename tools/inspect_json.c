#include "inspect.h"

#include <jansson.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ---- */

/* JSON text is UTF-8: what is not becomes U+FFFD, byte by byte. In an object's key, where jansson takes no NUL, that does too. */
static char *valid_utf8(qn_str s, bool is_key, size_t *n)
{
    char *out = s.len < SIZE_MAX / 3 ? malloc(s.len * 3 + 1) : NULL;
    *n = 0;
    if (!out) return NULL;
    for (size_t i = 0, k; i < s.len; i += k) {
        unsigned cp = 0;
        k = inspect_utf8((const unsigned char *)s.ptr + i, s.len - i, &cp);
        if (k == 0 || (is_key && cp == 0)) {
            memcpy(out + *n, "\xef\xbf\xbd", 3);
            *n += 3;
            k = 1;
        } else {
            memcpy(out + *n, s.ptr + i, k);
            *n += k;
        }
    }
    out[*n] = 0;
    return out;
}

static json_t *json_text(qn_str s)
{
    size_t n;
    char *text = valid_utf8(s, false, &n);
    json_t *j = text ? json_stringn_nocheck(text, n) : NULL;
    free(text);
    return j;
}

/* JSON has no NaN and no infinity: they are strings. */
static json_t *json_number(double x)
{
    if (isnan(x)) return json_string("NaN");
    if (isinf(x)) return json_string(x > 0 ? "Infinity" : "-Infinity");
    return json_real(x);
}

static json_t *json_scalar(const qn_value *v)
{
    int64_t i;
    double d = 0;
    bool b;
    qn_str s;
    if (qn_value_as_str(v, &s) == QN_OK) return json_text(s);
    if (qn_value_as_bool(v, &b) == QN_OK) return json_boolean(b);
    if (qn_value_as_i64(v, &i) == QN_OK) return json_integer(i);
    if (v->type == QN_V_U64) { /* beyond jansson's integers: its digits as a string */
        char digits[24];
        uint64_t u;
        memcpy(&u, v->data, sizeof u);
        snprintf(digits, sizeof digits, "%" PRIu64, u);
        return json_string(digits);
    }
    (void)qn_value_as_f64(v, &d); /* f32 and f64 are what is left */
    return json_number(d);
}

/* Arrays in arrays are as deep as opening the file allows: eight. */
static json_t *json_value(const qn_value *v, int32_t max_array)
{
    if (v->type != QN_V_ARRAY) return json_scalar(v);
    if (max_array >= 0 && v->count > (uint64_t)max_array)
        return json_pack("{s:s, s:I}", "elem", qn_vtype_name(v->elem), "count", (json_int_t)v->count);
    json_t *list = json_array();
    qn_value e;
    for (qn_value_iter it = qn_value_iterate(v); list && qn_value_next(&it, &e);) {
        if (json_array_append_new(list, json_value(&e, max_array)) == 0) continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}

/* ---- parts ---- */

/* Takes over `value`, NULL included; false when something failed. */
static bool put(json_t *object, qn_str key, json_t *value)
{
    size_t n;
    char *text = valid_utf8(key, true, &n);
    bool ok = false;
    if (text) ok = json_object_set_new_nocheck(object, text, value) == 0;
    else json_decref(value);
    free(text);
    return ok;
}

static bool add_keys(const inspect *in, json_t *values, json_t *types)
{
    qn_str key;
    qn_value v;
    for (int64_t i = 0; qn_file_key_at(in->file, i, &key, &v); i++) {
        char type[32];
        snprintf(type, sizeof type, "%s%s", qn_vtype_name(v.type == QN_V_ARRAY ? v.elem : v.type), v.type == QN_V_ARRAY ? "[]" : "");
        if (!put(values, key, json_value(&v, in->max_array)) || !put(types, key, json_string(type))) return false;
    }
    return true;
}

static bool add_tensors(const inspect *in, json_t *list)
{
    qn_tensor_info t;
    for (int64_t i = 0; qn_file_tensor_at(in->file, i, &t); i++) {
        json_t *dims = json_array();
        for (int32_t d = 0; d < t.n_dims; d++) json_array_append_new(dims, json_integer(t.dims[d]));
        json_t *j = json_pack("{s:o, s:s, s:o, s:I, s:I, s:i}", "name", json_text(t.name), "type", t.type_name, "dims", dims, "offset",
                              (json_int_t)t.offset, "bytes", (json_int_t)t.n_bytes, "shard", (int)t.i_shard);
        if (json_array_append_new(list, j)) return false;
    }
    return true;
}

static json_t *json_totals(const inspect_type *t)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:f}", "type", t->name, "tensors", (json_int_t)t->n_tensors, "weights", (json_int_t)t->n_weights,
                     "bytes", (json_int_t)t->n_bytes, "bits_per_weight", inspect_bits(t));
}

static bool add_totals(const inspect *in, json_t *root)
{
    json_t *types = json_array();
    bool ok = json_object_set_new(root, "types", types) == 0;
    for (int i = 0; ok && i < in->n_types; i++) ok = json_array_append_new(types, json_totals(&in->types[i])) == 0;
    return ok && json_object_set_new(root, "parameters", json_integer((json_int_t)in->total.n_weights)) == 0 &&
           json_object_set_new(root, "tensor_bytes", json_integer((json_int_t)in->total.n_bytes)) == 0 &&
           json_object_set_new(root, "bits_per_weight", json_real(inspect_bits(&in->total))) == 0;
}

static json_t *json_memory(const inspect *in)
{
    const qn_str why = { in->memory_err.text, strlen(in->memory_err.text) };
    if (in->memory_err.status) return json_pack("{s:o}", "error", json_text(why));
    json_t *j = json_pack("{s:i, s:i, s:I, s:I, s:I, s:I}", "ctx", (int)in->n_ctx, "chunk", (int)in->n_chunk, "weight_bytes",
                          (json_int_t)in->memory.weight_bytes, "kv_bytes", (json_int_t)in->memory.kv_bytes, "scratch_bytes",
                          (json_int_t)in->memory.scratch_bytes, "total_bytes", (json_int_t)inspect_memory(in));
    if (j && in->available_bytes) json_object_set_new(j, "available_bytes", json_integer((json_int_t)in->available_bytes));
    return j;
}

static json_t *build(const inspect *in)
{
    json_t *values = json_object(), *types = json_object(), *tensors = json_array();
    const qn_str path = { in->path, strlen(in->path) };
    json_t *root = json_pack("{s:o, s:i, s:i, s:I, s:o, s:o}", "file", json_text(path), "version", (int)qn_file_version(in->file), "shards",
                             (int)qn_file_n_shards(in->file), "file_bytes", (json_int_t)qn_file_bytes(in->file), "metadata", values,
                             "metadata_types", types);
    bool ok = root && add_keys(in, values, types);
    if (!in->keys_only)
        ok = ok && add_tensors(in, tensors) && json_object_set(root, "tensors", tensors) == 0 && add_totals(in, root) &&
             json_object_set_new(root, "memory", json_memory(in)) == 0;
    json_decref(tensors);
    if (ok) return root;
    json_decref(root);
    return NULL;
}

int inspect_json(const inspect *in)
{
    json_t *root = build(in);
    if (!root) return cli_fault("no memory for the JSON of %s", in->path);
    json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(17)); /* failures of stdout are the caller's to see */
    putchar('\n');
    json_decref(root);
    return CLI_OK;
}

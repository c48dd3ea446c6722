/* Any bytes as a GGUF file: opened, and everything in it read as a caller would. */
#include "src/format/gguf.h"
#include "src/format/keys.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink; /* keeps the reads */

static void touch(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) sink += p[i];
}

static void walk_value(const qn_value *v)
{
    int64_t i;
    double d;
    bool b;
    qn_str s;
    qn_value e;
    if (qn_value_as_i64(v, &i) == QN_OK) sink += (uint64_t)i;
    if (qn_value_as_f64(v, &d) == QN_OK) sink += d > 0;
    if (qn_value_as_bool(v, &b) == QN_OK) sink += b;
    if (qn_value_as_str(v, &s) == QN_OK) touch((const uint8_t *)s.ptr, s.len);
    uint64_t n = 0;
    for (qn_value_iter it = qn_value_iterate(v); qn_value_next(&it, &e); n++) walk_value(&e);
    if (v->type == QN_V_ARRAY && n != v->count) abort(); /* what was checked at opening has to be all there */
}

static void walk_keys(const qn_file *f)
{
    qn_str key;
    qn_value v, again;
    float x;
    char name[64];
    for (int64_t i = 0; qn_file_key_at(f, i, &key, &v); i++) {
        walk_value(&v);
        size_t n = 0;
        for (; n < key.len && n + 1 < sizeof name && key.ptr[n]; n++) name[n] = key.ptr[n];
        name[n] = 0;
        if (n == key.len && (!qn_file_key(f, name, &again) || again.data != v.data)) abort();
        (void)qn_key_f32(f, "%s", name, &x, NULL);
    }
}

static void walk_tensors(const qn_file *f)
{
    enum { MOST = 4096 };
    float out[MOST];
    qn_tensor_info t;
    for (int64_t i = 0; qn_file_tensor_at(f, i, &t); i++) {
        touch(qn_file_tensor_bytes(f, i), t.n_bytes);
        qn_file_tensor_expect(f, i);
        if (t.dims[0] > MOST) continue;
        const int64_t n_rows = t.dims[1] * t.dims[2] * t.dims[3];
        if (qn_file_rows_f32(f, i, n_rows - 1, 1, out, NULL) != QN_OK) abort();
        if (qn_file_rows_f32(f, i, n_rows, 1, out, NULL) == QN_OK) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    qn_file *f;
    qn_err err = { 0 };
    const qn_status s = qn_file_open_memory(&f, data, size, &err);
    if ((s == QN_OK) != (f != NULL) || (s != QN_OK && !err.text[0])) abort();
    if (f) {
        walk_keys(f);
        walk_tensors(f);
    }
    qn_file_close(&f);
    return 0;
}

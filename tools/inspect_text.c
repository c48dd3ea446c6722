#include "inspect.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 100, NAME_WIDTH = 48 };

/* ---- values ---- */

/* Characters that would move the cursor, recolour or reorder a terminal's text. */
static bool is_unsafe(unsigned cp)
{
    return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || (cp >= 0x200e && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202e) ||
           (cp >= 0x2066 && cp <= 0x2069);
}

void inspect_print_safe(qn_str s)
{
    for (size_t i = 0, k; i < s.len; i += k) {
        unsigned cp = 0;
        k = inspect_utf8((const unsigned char *)s.ptr + i, s.len - i, &cp);
        if (k == 0) {
            printf("\\x%02x", (unsigned char)s.ptr[i]);
            k = 1;
        } else if (cp == '\n' || cp == '\t' || cp == '\\') {
            printf("\\%c", cp == '\n' ? 'n' : cp == '\t' ? 't' : '\\');
        } else if (is_unsafe(cp)) {
            printf(cp < 0x100 ? "\\x%02x" : "\\u{%04x}", cp);
        } else {
            fwrite(s.ptr + i, 1, k, stdout);
        }
    }
}

static void print_string(qn_str s, size_t max_bytes)
{
    const size_t all = s.len;
    if (max_bytes && s.len > max_bytes) {
        s.len = max_bytes;
        while (s.len > max_bytes - 4 && (s.ptr[s.len] & 0xc0) == 0x80) s.len--; /* not inside a character */
    }
    inspect_print_safe(s);
    if (s.len < all) printf(" ... (%zu bytes)", all);
}

/* The shortest decimal number that reads back as the same one. */
static void print_real(double x, bool is_f32)
{
    char text[40];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (is_f32 ? strtof(text, NULL) == (float)x : strtod(text, NULL) == x) break;
    }
    fputs(text, stdout);
}

static void print_scalar(const qn_value *v, size_t max_bytes, bool quoted)
{
    int64_t i;
    double d;
    bool b;
    qn_str s;
    if (qn_value_as_str(v, &s) == QN_OK) {
        if (quoted) putchar('"');
        print_string(s, max_bytes);
        if (quoted) putchar('"');
    } else if (qn_value_as_bool(v, &b) == QN_OK) {
        fputs(b ? "true" : "false", stdout);
    } else if (qn_value_as_i64(v, &i) == QN_OK) {
        printf("%" PRId64, i);
    } else if (v->type == QN_V_U64) {
        uint64_t u; /* beyond int64 */
        memcpy(&u, v->data, sizeof u);
        printf("%" PRIu64, u);
    } else if (qn_value_as_f64(v, &d) == QN_OK) {
        print_real(d, v->type == QN_V_F32);
    }
}

static void print_array(const qn_value *v, int32_t max_array, size_t max_bytes)
{
    qn_value e;
    uint64_t n = 0;
    putchar('[');
    for (qn_value_iter it = qn_value_iterate(v); qn_value_next(&it, &e); n++) {
        if (max_array >= 0 && n >= (uint64_t)max_array) break;
        if (n) fputs(", ", stdout);
        if (e.type == QN_V_ARRAY) print_array(&e, max_array, max_bytes);
        else print_scalar(&e, max_bytes, true);
    }
    if (n < v->count) printf("%s... (%" PRIu64 ")", n ? ", " : "", v->count);
    putchar(']');
}

void inspect_print_value(const qn_value *v, int32_t max_array, size_t max_bytes)
{
    if (v->type == QN_V_ARRAY) print_array(v, max_array, max_bytes);
    else print_scalar(v, max_bytes, false);
}

/* ---- tables ---- */

/* "98.4 MB" */
static const char *size_of(uint64_t n, char out[32])
{
    const double x = (double)n;
    if (n < 10000) snprintf(out, 32, "%" PRIu64 " B", n);
    else if (x < 1e6) snprintf(out, 32, "%.1f kB", x / 1e3);
    else if (x < 1e9) snprintf(out, 32, "%.1f MB", x / 1e6);
    else snprintf(out, 32, "%.2f GB", x / 1e9);
    return out;
}

static const char *weights_of(uint64_t n, char out[32])
{
    const double x = (double)n;
    if (n < 100000) snprintf(out, 32, "%" PRIu64, n);
    else if (x < 1e9) snprintf(out, 32, "%.2f M", x / 1e6);
    else snprintf(out, 32, "%.2f G", x / 1e9);
    return out;
}

/* A name and spaces up to the width; escapes may push the next column right. */
static void print_name(qn_str s, size_t width)
{
    inspect_print_safe(s);
    printf("%*s", s.len < width ? (int)(width - s.len) : 0, "");
}

static void print_keys(const inspect *in)
{
    qn_str key;
    qn_value v;
    char type[32];
    size_t width = 0;
    for (int64_t i = 0; qn_file_key_at(in->file, i, &key, &v); i++)
        if (key.len > width && key.len <= NAME_WIDTH) width = key.len;
    printf("\nMetadata: %" PRId64 " keys\n", qn_file_n_keys(in->file));
    for (int64_t i = 0; qn_file_key_at(in->file, i, &key, &v); i++) {
        printf("  ");
        print_name(key, width);
        const bool is_array = v.type == QN_V_ARRAY;
        snprintf(type, sizeof type, "%s%s", qn_vtype_name(is_array ? v.elem : v.type), is_array ? "[]" : "");
        printf("  %-9s", type);
        inspect_print_value(&v, in->max_array, in->full ? 0 : TEXT_BYTES);
        putchar('\n');
    }
}

static void print_tensors(const inspect *in)
{
    qn_tensor_info t;
    char text[32];
    size_t width = 0;
    for (int64_t i = 0; qn_file_tensor_at(in->file, i, &t); i++)
        if (t.name.len > width && t.name.len <= NAME_WIDTH) width = t.name.len;
    printf("\nTensors: %" PRId64 "\n", qn_file_n_tensors(in->file));
    for (int64_t i = 0; qn_file_tensor_at(in->file, i, &t); i++) {
        printf("  ");
        print_name(t.name, width);
        printf("  %-8s %10s  ", t.type_name, size_of(t.n_bytes, text));
        for (int32_t d = 0; d < t.n_dims; d++) printf("%s%" PRId64, d ? " x " : "", t.dims[d]);
        putchar('\n');
    }
}

static void print_type(const inspect_type *t)
{
    char bytes[32], weights[32];
    printf("  %-9s%8" PRId64 "  %11s  %10s  %15.3f\n", t->name, t->n_tensors, weights_of(t->n_weights, weights), size_of(t->n_bytes, bytes),
           inspect_bits(t));
}

static void print_memory(const inspect *in)
{
    char weights[32], kv[32], scratch[32], all[32], have[32];
    if (in->memory_err.status) {
        printf("\nMemory: %s\n", in->memory_err.text);
        return;
    }
    printf("\nMemory for a context of %d tokens, prompts in chunks of %d\n", in->n_ctx, in->n_chunk);
    printf("  weights %s + KV cache %s + scratch %s = %s\n", size_of(in->memory.weight_bytes, weights), size_of(in->memory.kv_bytes, kv),
           size_of(in->memory.scratch_bytes, scratch), size_of(inspect_memory(in), all));
    if (in->available_bytes && inspect_memory(in) > in->available_bytes)
        printf("  This is more than the %s that this machine has available.\n", size_of(in->available_bytes, have));
}

void inspect_text(const inspect *in)
{
    char text[32];
    printf("File: ");
    inspect_print_safe((qn_str){ in->path, strlen(in->path) });
    printf("\nGGUF version %d, %s", qn_file_version(in->file), size_of(qn_file_bytes(in->file), text));
    if (qn_file_n_shards(in->file) > 1) printf(" in %d shards", qn_file_n_shards(in->file));
    putchar('\n');
    print_keys(in);
    if (in->keys_only) return;
    print_tensors(in);
    printf("\n  %-9s%8s  %11s  %10s  %15s\n", "Type", "tensors", "weights", "size", "bits per weight");
    for (int i = 0; i < in->n_types; i++) print_type(&in->types[i]);
    print_type(&in->total);
    print_memory(in);
}

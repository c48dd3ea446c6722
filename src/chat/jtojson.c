/* Python's json.dumps. */
#include "src/chat/jvm.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The escape of a character that needs one, in out; 0 where it stands for itself. */
static size_t escape_of(int32_t c, bool ascii, char out[16])
{
    static const char from[] = "\"\\\n\r\t\f\b", to[] = "\"\\nrtfb";
    const char *hit = c && c < 0x80 ? strchr(from, c) : NULL;
    if (hit) return (size_t)snprintf(out, 16, "\\%c", to[hit - from]);
    if (c < 0x20) return (size_t)snprintf(out, 16, "\\u%04x", (unsigned)c);
    if (!ascii || c < 0x7f) return 0;
    if (c & QN_J_BYTE) return (size_t)snprintf(out, 16, "\\udc%02x", (unsigned)c & 0xff); /* as Python names a stray byte */
    if (c < 0x10000) return (size_t)snprintf(out, 16, "\\u%04x", (unsigned)c);
    c -= 0x10000;
    return (size_t)snprintf(out, 16, "\\u%04x\\u%04x", 0xd800u + (unsigned)(c >> 10), 0xdc00u + ((unsigned)c & 0x3ff));
}

static bool put_text(qn_jbuf *b, const qn_jstr *s, bool ascii)
{
    char esc[16];
    if (!qn_jbuf_lit(b, "\"")) return false;
    for (size_t from = 0; from < s->n;) {
        bool plain;
        const size_t end = qn_js_stretch(s, from, &plain);
        size_t kept = from; /* bytes from here on stand for themselves */
        for (size_t at = from, len; at < end; at += len) {
            const size_t n = escape_of(qn_js_decode(s->p + at, s->p + s->n, &len), ascii, esc);
            if (!n) continue;
            if (!qn_jbuf_add(b, s->p + kept, at - kept, plain) || !qn_jbuf_add(b, esc, n, plain)) return false;
            kept = at + len;
        }
        if (!qn_jbuf_add(b, s->p + kept, end - kept, plain)) return false;
        from = end;
    }
    return qn_jbuf_lit(b, "\"") && qn_jvm_charge(b->vm, s->n / 16);
}

/* What JSON writes without quotes: numbers and the three words. NULL for other types. */
static const char *word_of(qn_jval v, char out[40])
{
    switch (v.type) {
    case QN_J_NONE: return "null";
    case QN_J_BOOL: return v.b ? "true" : "false";
    case QN_J_INT: snprintf(out, 40, "%" PRId64, v.i); return out;
    case QN_J_FLOAT:
        if (isnan(v.f)) return "NaN";
        if (isinf(v.f)) return v.f < 0 ? "-Infinity" : "Infinity";
        out[qn_jnum_repr(v.f, out)] = 0;
        return out;
    default: return NULL;
    }
}

static bool put_break(qn_jbuf *b, const qn_jdump *how, int level)
{
    if (!how->indent) return true;
    if (!qn_jbuf_lit(b, "\n")) return false;
    return qn_jbuf_fill(b, how->indent, (size_t)level);
}

static bool put_key(qn_jbuf *b, qn_jval key, const qn_jdump *how)
{
    char text[40];
    if (key.type == QN_J_STR) return put_text(b, key.s, how->ensure_ascii);
    if (key.type == QN_J_BIG) return qn_jbuf_lit(b, "\"") && qn_jbuf_str(b, key.s) && qn_jbuf_lit(b, "\"");
    const char *word = word_of(key, text);
    if (!word) return qn_jvm_fail(b->vm, "keys must be str, int, float, bool or None, not %s", qn_jv_type_name(key));
    return qn_jbuf_lit(b, "\"") && qn_jbuf_lit(b, word) && qn_jbuf_lit(b, "\"");
}

static bool put_list(qn_jbuf *b, const qn_jlist *l, const qn_jdump *how, int level)
{
    if (!l->n) return qn_jbuf_lit(b, "[]");
    if (!qn_jbuf_lit(b, "[")) return false;
    for (size_t i = 0; i < l->n; i++) {
        if (i && !qn_jbuf_str(b, how->item_sep)) return false;
        if (!put_break(b, how, level + 1) || !qn_jbuf_json(b, l->v[i], how, level + 1)) return false;
    }
    return put_break(b, how, level) && qn_jbuf_lit(b, "]");
}

static qn_jval *copy_of(qn_jvm *vm, const qn_jval *v, size_t n)
{
    qn_jval *p = qn_jvm_new(vm, n, sizeof *p);
    if (p && n) memcpy(p, v, n * sizeof *p);
    return p;
}

/* Pairs in the order of their keys, or as they came. */
static bool ordered(qn_jvm *vm, const qn_jdict *d, bool sort, qn_jval **key, qn_jval **val)
{
    *key = d->key;
    *val = d->val;
    if (!sort) return true;
    *key = copy_of(vm, d->key, d->n);
    *val = copy_of(vm, d->val, d->n);
    return *key && *val && qn_jv_sort(vm, d->key, *val, d->n, false) && qn_jv_sort(vm, d->key, *key, d->n, false);
}

static bool put_dict(qn_jbuf *b, const qn_jdict *d, const qn_jdump *how, int level)
{
    qn_jval *key, *val;
    if (!d->n) return qn_jbuf_lit(b, "{}");
    if (!ordered(b->vm, d, how->sort_keys, &key, &val) || !qn_jbuf_lit(b, "{")) return false;
    for (size_t i = 0; i < d->n; i++) {
        if (i && !qn_jbuf_str(b, how->item_sep)) return false;
        if (!put_break(b, how, level + 1) || !put_key(b, key[i], how) || !qn_jbuf_str(b, how->key_sep)) return false;
        if (!qn_jbuf_json(b, val[i], how, level + 1)) return false;
    }
    return put_break(b, how, level) && qn_jbuf_lit(b, "}");
}

bool qn_jbuf_json(qn_jbuf *b, qn_jval v, const qn_jdump *how, int level)
{
    qn_jvm *vm = b->vm;
    char text[40];
    const char *word = word_of(v, text);
    if (!qn_jvm_charge(vm, 1)) return false;
    if (word) return qn_jbuf_lit(b, word);
    if (v.type == QN_J_BIG) return qn_jbuf_str(b, v.s);
    if (v.type == QN_J_STR) return put_text(b, v.s, how->ensure_ascii);
    if (v.type != QN_J_LIST && v.type != QN_J_TUPLE && v.type != QN_J_DICT)
        return qn_jvm_fail(vm, "Object of type %s is not JSON serializable", qn_jv_type_name(v));
    if (!qn_jvm_enter_data(vm)) return false;
    const bool done = v.type == QN_J_DICT ? put_dict(b, v.d, how, level) : put_list(b, v.l, how, level);
    qn_jvm_leave_data(vm);
    return done;
}

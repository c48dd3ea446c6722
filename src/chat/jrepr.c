/* Values as text: Python's str() and repr(), HTML escaping, pprint. */
#include "src/chat/jvm.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

/* ---- strings ---- */

static bool printable(int32_t c)
{
    if (c < 0x7f) return c >= 0x20;
    if (c & QN_J_BYTE) return false;
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS: return false;
    default: return true;
    }
}

static bool escaped_char(qn_jbuf *b, int32_t c, bool plain)
{
    char text[16];
    const int32_t v = c & QN_J_BYTE ? c & 0xff : c;
    const char *name = c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : c == '\\' ? "\\\\" : c == '\'' ? "\\'" : NULL;
    if (name) snprintf(text, sizeof text, "%s", name);
    else snprintf(text, sizeof text, v < 0x100 ? "\\x%02x" : v < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)v);
    return qn_jbuf_add(b, text, strlen(text), plain);
}

bool qn_jbuf_repr_str(qn_jbuf *b, const qn_jstr *s, bool ascii)
{
    const bool twice = s->n && memchr(s->p, '\'', s->n) && !memchr(s->p, '"', s->n);
    const char quote = twice ? '"' : '\'';
    if (!qn_jbuf_add(b, &quote, 1, false)) return false;
    for (size_t at = 0; at < s->n;) {
        bool plain;
        const size_t end = qn_js_stretch(s, at, &plain);
        size_t from = at;
        while (at < end) { /* unchanged characters go in runs */
            size_t n;
            const int32_t c = qn_js_decode(s->p + at, s->p + end, &n);
            const bool keep = c != '\\' && (c != '\'' || twice) && printable(c) && (c < 0x80 || !ascii);
            if (!keep && (!qn_jbuf_add(b, s->p + from, at - from, plain) || !escaped_char(b, c, plain))) return false;
            at += n;
            if (!keep) from = at;
        }
        if (!qn_jbuf_add(b, s->p + from, at - from, plain)) return false;
    }
    return qn_jbuf_add(b, &quote, 1, false);
}

const qn_jstr *qn_jv_escape(qn_jvm *vm, qn_jval v)
{
    const qn_jstr *s = qn_jv_to_str(vm, v);
    if (!s || (v.type == QN_J_STR && v.markup)) return s;
    qn_jbuf b = { .vm = vm };
    for (size_t at = 0; at < s->n;) {
        bool plain;
        const size_t end = qn_js_stretch(s, at, &plain);
        for (; at < end; at++) {
            const char c = s->p[at];
            const char *e = c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '\'' ? "&#39;" : c == '"' ? "&#34;" : NULL;
            if (!(e ? qn_jbuf_add(&b, e, strlen(e), plain) : qn_jbuf_add(&b, &c, 1, plain))) return NULL;
        }
    }
    return qn_jbuf_done(&b);
}

/* ---- everything else ---- */

static bool add_int(qn_jbuf *b, int64_t i)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, i);
    return qn_jbuf_lit(b, text);
}

static bool items(qn_jbuf *b, const qn_jlist *l, const char *open, const char *close)
{
    if (!qn_jbuf_lit(b, open)) return false;
    for (size_t i = 0; i < l->n; i++)
        if ((i && !qn_jbuf_lit(b, ", ")) || !qn_jbuf_repr(b, l->v[i])) return false;
    return qn_jbuf_lit(b, close);
}

static bool pairs(qn_jbuf *b, const qn_jdict *d)
{
    if (!qn_jbuf_lit(b, "{")) return false;
    for (size_t i = 0; i < d->n; i++) {
        if (i && !qn_jbuf_lit(b, ", ")) return false;
        if (!qn_jbuf_repr(b, d->key[i]) || !qn_jbuf_lit(b, ": ") || !qn_jbuf_repr(b, d->val[i])) return false;
    }
    return qn_jbuf_lit(b, "}");
}

static bool view(qn_jbuf *b, qn_jval v)
{
    qn_jseq q;
    if (!qn_jv_seq(b->vm, v, &q)) return false;
    return qn_jbuf_lit(b, qn_jv_type_name(v)) && items(b, q.l, "([", "])");
}

static bool range(qn_jbuf *b, const qn_jrange *r)
{
    if (!qn_jbuf_lit(b, "range(") || !add_int(b, r->start) || !qn_jbuf_lit(b, ", ") || !add_int(b, r->stop)) return false;
    if (r->step != 1 && (!qn_jbuf_lit(b, ", ") || !add_int(b, r->step))) return false;
    return qn_jbuf_lit(b, ")");
}

static bool loop(qn_jbuf *b, qn_jloop *l)
{
    int64_t n;
    return qn_jloop_length(b->vm, l, &n) && qn_jbuf_lit(b, "<LoopContext ") && add_int(b, l->index0 + 1) && qn_jbuf_lit(b, "/") &&
           add_int(b, n) && qn_jbuf_lit(b, ">");
}

static bool string(qn_jbuf *b, qn_jval v)
{
    if (!v.markup) return qn_jbuf_repr_str(b, v.s, false);
    return qn_jbuf_lit(b, "Markup(") && qn_jbuf_repr_str(b, v.s, false) && qn_jbuf_lit(b, ")");
}

static bool number(qn_jbuf *b, qn_jval v)
{
    char text[64];
    qn_jnum_repr(v.f, text);
    return qn_jbuf_lit(b, text);
}

static bool container(qn_jbuf *b, qn_jval v)
{
    if (!qn_jvm_enter_data(b->vm)) return false;
    bool ok;
    if (v.type == QN_J_LIST) ok = items(b, v.l, "[", "]");
    else if (v.type == QN_J_TUPLE) ok = items(b, v.l, "(", v.l->n == 1 ? ",)" : ")");
    else if (v.type == QN_J_SPACE) ok = qn_jbuf_lit(b, "<Namespace ") && pairs(b, v.d) && qn_jbuf_lit(b, ">");
    else if (v.type == QN_J_VIEW) ok = view(b, v);
    else ok = pairs(b, v.d);
    qn_jvm_leave_data(b->vm);
    return ok;
}

bool qn_jbuf_repr(qn_jbuf *b, qn_jval v)
{
    if (!qn_jvm_charge(b->vm, 1)) return false;
    switch (v.type) {
    case QN_J_UNDEF: return qn_jbuf_lit(b, "Undefined");
    case QN_J_NONE: return qn_jbuf_lit(b, "None");
    case QN_J_BOOL: return qn_jbuf_lit(b, v.b ? "True" : "False");
    case QN_J_INT: return add_int(b, v.i);
    case QN_J_BIG: return qn_jbuf_str(b, v.s);
    case QN_J_FLOAT: return number(b, v);
    case QN_J_STR: return string(b, v);
    case QN_J_LIST:
    case QN_J_TUPLE:
    case QN_J_DICT:
    case QN_J_SPACE:
    case QN_J_VIEW: return container(b, v);
    case QN_J_RANGE: return range(b, v.range);
    case QN_J_LOOP: return loop(b, v.loop);
    default: return qn_jbuf_lit(b, "<") && qn_jbuf_lit(b, qn_jv_type_name(v)) && qn_jbuf_lit(b, " object>");
    }
}

bool qn_jbuf_display(qn_jbuf *b, qn_jval v)
{
    if (v.type == QN_J_STR) return qn_jbuf_str(b, v.s);
    if (v.type == QN_J_UNDEF) return true;
    return qn_jbuf_repr(b, v);
}

const qn_jstr *qn_jv_to_str(qn_jvm *vm, qn_jval v)
{
    if (v.type == QN_J_STR) return v.s;
    qn_jbuf b = { .vm = vm };
    return qn_jbuf_display(&b, v) ? qn_jbuf_done(&b) : NULL;
}

/* ---- pprint: what does not fit in 80 columns goes on lines of its own ---- */

static bool pretty(qn_jbuf *b, qn_jval v, size_t indent, size_t allowance);

static bool sorted_pairs(qn_jvm *vm, const qn_jdict *d, qn_jval *key, qn_jval *val)
{
    for (size_t i = 0; i < d->n; i++) {
        key[i] = d->key[i];
        qn_jlist *pair = qn_jl_new(vm, 2);
        if (!pair || !qn_jl_add(vm, pair, d->key[i]) || !qn_jl_add(vm, pair, d->val[i])) return false;
        val[i] = QN_JV(QN_J_TUPLE, l, pair);
        if (i && key[i].type != key[0].type) return true; /* no order: left as it is */
    }
    return qn_jv_sort(vm, key, val, d->n, false);
}

/* A copy whose dicts are in the order of their keys. */
static bool ordered(qn_jvm *vm, qn_jval v, qn_jval *out)
{
    *out = v;
    if (v.type != QN_J_DICT && v.type != QN_J_LIST && v.type != QN_J_TUPLE) return true;
    if (!qn_jvm_enter_data(vm)) return false;
    if (v.type == QN_J_DICT) {
        qn_jval *key = qn_jvm_new(vm, v.d->n, sizeof *key), *val = qn_jvm_new(vm, v.d->n, sizeof *val);
        qn_jdict *d = qn_jd_new(vm);
        if (!key || !val || !d || !sorted_pairs(vm, v.d, key, val)) return false;
        for (size_t i = 0; i < v.d->n; i++) {
            qn_jval item;
            if (val[i].type != QN_J_TUPLE) return qn_jvm_leave_data(vm), true;
            if (!ordered(vm, val[i].l->v[1], &item) || !qn_jd_set(vm, d, val[i].l->v[0], item)) return false;
        }
        *out = QN_JV(QN_J_DICT, d, d);
    } else {
        qn_jlist *l = qn_jl_new(vm, v.l->n);
        if (!l) return false;
        for (size_t i = 0; i < v.l->n; i++) {
            qn_jval item;
            if (!ordered(vm, v.l->v[i], &item) || !qn_jl_add(vm, l, item)) return false;
        }
        out->l = l;
    }
    qn_jvm_leave_data(vm);
    return true;
}

static bool newline(qn_jbuf *b, size_t indent)
{
    const qn_jstr space = { .p = " ", .n = 1, .n_chars = 1 };
    return qn_jbuf_lit(b, "\n") && qn_jbuf_fill(b, &space, indent);
}

static bool pretty_pairs(qn_jbuf *b, const qn_jdict *d, size_t indent, size_t allowance)
{
    for (size_t i = 0; i < d->n; i++) {
        const size_t before = b->n;
        if ((i && !(qn_jbuf_lit(b, ",") && newline(b, indent + 1))) || !qn_jbuf_repr(b, d->key[i]) || !qn_jbuf_lit(b, ": ")) return false;
        const qn_jstr key = { .p = b->p + before, .n = b->n - before, .n_chars = SIZE_MAX };
        const size_t skip = i ? indent + 3 : 0;
        if (!pretty(b, d->val[i], indent + 1 + qn_js_chars(&key) - skip, i + 1 < d->n ? 1 : allowance + 1)) return false;
    }
    return true;
}

static bool pretty_items(qn_jbuf *b, const qn_jlist *l, size_t indent, size_t allowance)
{
    for (size_t i = 0; i < l->n; i++)
        if ((i && !(qn_jbuf_lit(b, ",") && newline(b, indent + 1))) || !pretty(b, l->v[i], indent + 1, i + 1 < l->n ? 1 : allowance + 1))
            return false;
    return true;
}

static bool pretty(qn_jbuf *b, qn_jval v, size_t indent, size_t allowance)
{
    qn_jbuf flat = { .vm = b->vm };
    if (!qn_jbuf_repr(&flat, v)) return false;
    const qn_jstr *s = qn_jbuf_done(&flat);
    if (!s) return false;
    const bool split = v.type == QN_J_DICT || v.type == QN_J_LIST || v.type == QN_J_TUPLE;
    if (!split || qn_js_chars(s) + indent + allowance <= 80) return qn_jbuf_str(b, s);
    if (!qn_jvm_enter_data(b->vm)) return false;
    bool ok;
    if (v.type == QN_J_DICT) ok = qn_jbuf_lit(b, "{") && pretty_pairs(b, v.d, indent, allowance) && qn_jbuf_lit(b, "}");
    else ok = qn_jbuf_lit(b, v.type == QN_J_LIST ? "[" : "(") && pretty_items(b, v.l, indent, allowance) &&
              qn_jbuf_lit(b, v.type == QN_J_LIST ? "]" : v.l->n == 1 ? ",)" : ")");
    qn_jvm_leave_data(b->vm);
    return ok;
}

bool qn_jbuf_pretty(qn_jbuf *b, qn_jval v)
{
    qn_jval sorted;
    return ordered(b->vm, v, &sorted) && pretty(b, sorted, 0, 0);
}

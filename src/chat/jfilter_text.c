/* Filters that work on text. */
#include "src/chat/jfilter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

/* A str stays what it is, marked safe or not; anything else becomes its str(). */
static bool soft(qn_jvm *vm, qn_jval v, qn_jval *out)
{
    *out = v;
    if (v.type == QN_J_STR) return true;
    const qn_jstr *s = qn_jv_to_str(vm, v);
    if (s) *out = qn_jv_str(s);
    return s;
}

static bool flag(qn_jvm *vm, qn_jval v)
{
    return qn_jarg_given(v) && qn_jv_truth(vm, v);
}

static bool cased(qn_jvm *vm, qn_jval v, int how, qn_jval *out)
{
    qn_jval s;
    qn_jbuf b = { .vm = vm };
    return soft(vm, v, &s) && qn_jbuf_case(&b, s.s, how) && qn_jbuf_value(&b, s.markup, out);
}

bool qn_jfilter_upper(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return cased(vm, c->a[0], QN_JCASE_UPPER, out);
}

bool qn_jfilter_lower(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return cased(vm, c->a[0], QN_JCASE_LOWER, out);
}

bool qn_jfilter_capitalize(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return cased(vm, c->a[0], QN_JCASE_CAPITALIZE, out);
}

static bool word_border(int32_t c)
{
    return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || qn_js_space(c);
}

/* Words begin after white space and -({[<, and nowhere else. */
bool qn_jfilter_title(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jval v;
    if (!soft(vm, c->a[0], &v)) return false;
    const qn_jstr *s = v.s;
    qn_jbuf b = { .vm = vm };
    for (size_t at = 0; at < s->n;) {
        size_t n, end = at;
        const bool border = word_border(qn_js_decode(s->p + at, s->p + s->n, &n));
        while (end < s->n && word_border(qn_js_decode(s->p + end, s->p + s->n, &n)) == border) end += n;
        if (border) {
            if (!qn_jbuf_sub(&b, s, at, end)) return false;
        } else {
            qn_js_decode(s->p + at, s->p + s->n, &n);
            const qn_jstr *head = qn_js_sub(vm, s, at, at + n), *tail = qn_js_sub(vm, s, at + n, end);
            if (!head || !tail || !qn_jbuf_case(&b, head, QN_JCASE_UPPER) || !qn_jbuf_case(&b, tail, QN_JCASE_LOWER)) return false;
        }
        at = end;
    }
    return qn_jbuf_value(&b, false, out);
}

bool qn_jfilter_center(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jval s;
    int64_t width;
    return qn_jarg_int_or(vm, c->a[1], 80, &width) && soft(vm, c->a[0], &s) && qn_js_center(vm, s, width, NULL, out);
}

bool qn_jfilter_trim(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jval v;
    size_t from, to;
    const qn_jstr *chars = NULL;
    if (!soft(vm, c->a[0], &v)) return false;
    if (qn_jarg_given(c->a[1]) && c->a[1].type != QN_J_NONE && !(chars = qn_jarg_str(vm, c->a[1]))) return false;
    qn_js_strip(v.s, chars, true, true, &from, &to);
    const qn_jstr *s = qn_js_sub(vm, v.s, from, to);
    if (s) *out = qn_jv_text(s, v.markup);
    return s;
}

bool qn_jfilter_replace(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jbuf b = { .vm = vm };
    int64_t count = -1;
    if (qn_jarg_given(c->a[3]) && c->a[3].type != QN_J_NONE && !qn_jarg_int(vm, c->a[3], &count)) return false;
    const bool markup = vm->autoescape && (c->a[0].markup || c->a[1].markup || c->a[2].markup);
    const qn_jstr *s = markup ? qn_jv_escape(vm, c->a[0]) : qn_jv_to_str(vm, c->a[0]), *old = qn_jv_to_str(vm, c->a[1]);
    const qn_jstr *fresh = markup ? qn_jv_escape(vm, c->a[2]) : qn_jv_to_str(vm, c->a[2]);
    return s && old && fresh && qn_js_replace(vm, s, old, fresh, count, &b) && qn_jbuf_value(&b, markup, out);
}

bool qn_jfilter_string(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return soft(vm, c->a[0], out);
}

bool qn_jfilter_safe(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    if (!soft(vm, c->a[0], out)) return false;
    out->markup = true;
    return true;
}

bool qn_jfilter_escape(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    const qn_jstr *s = qn_jv_escape(vm, c->a[0]);
    if (s) *out = qn_jv_text(s, true);
    return s;
}

bool qn_jfilter_forceescape(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    const qn_jstr *s = qn_jv_to_str(vm, c->a[0]);
    if (s) s = qn_jv_escape(vm, qn_jv_str(s));
    if (s) *out = qn_jv_text(s, true);
    return s;
}

bool qn_jfilter_format(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jval text, args;
    if (!soft(vm, c->a[0], &text)) return false;
    if (c->raw->n_pos && c->raw->n_kw) return qn_jvm_fail(vm, "can't handle positional and keyword arguments at the same time");
    if (c->raw->n_kw) {
        qn_jdict *d = qn_jd_new(vm);
        if (!d) return false;
        for (size_t i = 0; i < c->raw->n_kw; i++)
            if (!qn_jd_set(vm, d, qn_jv_str(c->raw->name[i]), c->raw->kw[i])) return false;
        args = QN_JV(QN_J_DICT, d, d);
    } else {
        qn_jlist *l = qn_jl_new(vm, c->raw->n_pos);
        if (!l) return false;
        for (size_t i = 0; i < c->raw->n_pos; i++) l->v[l->n++] = c->raw->pos[i];
        args = QN_JV(QN_J_TUPLE, l, l);
    }
    return qn_jformat_percent(vm, text, args, out);
}

/* ---- lines ---- */

static bool indention(qn_jvm *vm, qn_jval width, const qn_jstr **out)
{
    if (width.type == QN_J_STR) return *out = width.s, true;
    int64_t n;
    qn_jbuf b = { .vm = vm };
    const qn_jstr space = { .p = " ", .n = 1, .n_chars = 1 };
    if (!qn_jarg_int_or(vm, width, 4, &n) || !qn_jbuf_fill(&b, &space, n > 0 ? (size_t)n : 0)) return false;
    return (*out = qn_jbuf_done(&b));
}

bool qn_jfilter_indent(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    const qn_jstr *indent, *newline = qn_js_lit(vm, "\n");
    qn_jval s;
    qn_jlist lines = { 0 };
    qn_jbuf b = { .vm = vm };
    if (!newline || !indention(vm, c->a[1], &indent)) return false;
    if (!qn_jop_binary(vm, QN_JOP_ADD, c->a[0], qn_jv_text(newline, c->a[0].markup), &s)) return false;
    const bool first = flag(vm, c->a[2]), blank = flag(vm, c->a[3]);
    if (!qn_js_lines(vm, s.s, false, false, &lines)) return false;
    for (size_t i = 0; i < lines.n; i++) {
        if (i && !qn_jbuf_lit(&b, "\n")) return false;
        if ((i ? blank || lines.v[i].s->n : first) && !qn_jbuf_str(&b, indent)) return false;
        if (!qn_jbuf_str(&b, lines.v[i].s)) return false;
    }
    return qn_jbuf_value(&b, s.markup, out);
}

bool qn_jfilter_truncate(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    int64_t length, leeway, len;
    qn_jval cut;
    const qn_jstr *end = qn_js_lit(vm, "...");
    if (qn_jarg_given(c->a[3])) end = qn_jarg_str(vm, c->a[3]);
    if (!end || !qn_jarg_int_or(vm, c->a[1], 255, &length)) return false;
    if (c->a[4].type == QN_J_NONE) c->a[4].type = QN_J_MISSING;
    if (!qn_jarg_int_or(vm, c->a[4], 5, &leeway) || !qn_jv_len(vm, c->a[0], &len)) return false;
    const int64_t n_end = (int64_t)qn_js_chars(end);
    if (length < n_end) return qn_jvm_fail(vm, "expected length >= %" PRId64 ", got %" PRId64, n_end, length);
    if (leeway < 0) return qn_jvm_fail(vm, "expected leeway >= 0, got %" PRId64, leeway);
    *out = c->a[0];
    if (len <= length || len - length <= leeway) return true;
    if (!qn_jop_slice(vm, c->a[0], qn_jv_none(), qn_jv_int(length - n_end), qn_jv_none(), &cut)) return false;
    if (cut.type != QN_J_STR) return qn_jvm_fail(vm, "can only truncate a string");
    if (!flag(vm, c->a[2])) {
        const qn_jstr space = { .p = " ", .n = 1, .n_chars = 1 };
        const size_t at = qn_js_rfind(cut.s, &space, 0, cut.s->n);
        if (at != SIZE_MAX && !(cut.s = qn_js_sub(vm, cut.s, 0, at))) return false;
    }
    return qn_jop_binary(vm, QN_JOP_ADD, cut, qn_jv_text(end, qn_jarg_given(c->a[3]) && c->a[3].markup), out);
}

static bool word_char(int32_t c)
{
    if (c < 0x80) return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (c & QN_J_BYTE) return false;
    const utf8proc_category_t k = utf8proc_category(c);
    return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO) || (k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO);
}

bool qn_jfilter_wordcount(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jval s;
    int64_t words = 0;
    bool inside = false;
    if (!soft(vm, c->a[0], &s)) return false;
    for (size_t at = 0, n; at < s.s->n; at += n) {
        const bool word = word_char(qn_js_decode(s.s->p + at, s.s->p + s.s->n, &n));
        words += word && !inside;
        inside = word;
    }
    *out = qn_jv_int(words);
    return true;
}

/* ---- HTML and addresses ---- */

static bool quote(qn_jbuf *b, const qn_jstr *s, bool for_query)
{
    for (size_t i = 0; i < s->n; i++) {
        const unsigned char c = (unsigned char)s->p[i];
        char hex[4];
        const bool keep = (c < 0x80 && (word_char(c) || c == '.' || c == '-' || c == '~')) || (c == '/' && !for_query);
        bool plain;
        qn_js_stretch(s, i, &plain);
        snprintf(hex, sizeof hex, "%%%02X", c);
        if (c == ' ' && for_query ? !qn_jbuf_add(b, "+", 1, plain) : keep ? !qn_jbuf_add(b, s->p + i, 1, plain) : !qn_jbuf_add(b, hex, 3, plain))
            return false;
    }
    return true;
}

bool qn_jfilter_urlencode(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jbuf b = { .vm = vm };
    qn_jval items = c->a[0];
    if (items.type == QN_J_STR || !qn_jv_iterable(items)) {
        const qn_jstr *s = qn_jv_to_str(vm, items);
        return s && quote(&b, s, false) && qn_jbuf_value(&b, false, out);
    }
    qn_jview view = { items.d, 2 };
    if (items.type == QN_J_DICT) items = QN_JV(QN_J_VIEW, view, &view);
    qn_jlist *l, *pair;
    if (!qn_jv_list(vm, items, &l)) return false;
    for (size_t i = 0; i < l->n; i++) {
        if (!qn_jv_list(vm, l->v[i], &pair)) return false;
        if (pair->n != 2) return qn_jvm_fail(vm, "urlencode needs pairs");
        const qn_jstr *key = qn_jv_to_str(vm, pair->v[0]), *val = qn_jv_to_str(vm, pair->v[1]);
        if (!key || !val || (i && !qn_jbuf_lit(&b, "&")) || !quote(&b, key, true) || !qn_jbuf_lit(&b, "=") || !quote(&b, val, true)) return false;
    }
    return qn_jbuf_value(&b, false, out);
}

static const struct {
    const char *name;
    int32_t c;
} entities[] = { { "amp", '&' }, { "lt", '<' }, { "gt", '>' }, { "quot", '"' }, { "apos", '\'' }, { "nbsp", 0xa0 }, { "copy", 0xa9 },
                 { "reg", 0xae }, { "laquo", 0xab }, { "raquo", 0xbb }, { "hellip", 0x2026 }, { "mdash", 0x2014 }, { "ndash", 0x2013 },
                 { "lsquo", 0x2018 }, { "rsquo", 0x2019 }, { "ldquo", 0x201c }, { "rdquo", 0x201d }, { "euro", 0x20ac }, { "times", 0xd7 },
                 { "deg", 0xb0 }, { "middot", 0xb7 }, { "bull", 0x2022 }, { "trade", 0x2122 } };

/* The character of "&name;" at p and the bytes it takes; -1 when it is none. */
static int32_t entity(const char *p, const char *end, size_t *n)
{
    const char *semi = memchr(p, ';', (size_t)(end - p) < 12 ? (size_t)(end - p) : 12);
    if (!semi) return -1;
    *n = (size_t)(semi - p) + 1;
    if (p[1] == '#') {
        const bool hex = p + 2 < semi && (p[2] | 32) == 'x';
        int32_t c = 0;
        for (const char *q = p + 2 + hex; q < semi; q++) {
            const int d = *q >= '0' && *q <= '9' ? *q - '0' : hex && (*q | 32) >= 'a' && (*q | 32) <= 'f' ? (*q | 32) - 'a' + 10 : 99;
            if (d == 99) return -1;
            c = c * (hex ? 16 : 10) + d;
            if (c > 0x10ffff) return 0xfffd;
        }
        return semi > p + 2 + hex ? c : -1;
    }
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++)
        if (strlen(entities[i].name) == *n - 2 && !memcmp(p + 1, entities[i].name, *n - 2)) return entities[i].c;
    return -1;
}

static bool without_tags(qn_jvm *vm, const qn_jstr *s, const char *open, const char *close, const qn_jstr **out)
{
    qn_jbuf b = { .vm = vm };
    const qn_jstr from = { .p = open, .n = strlen(open) }, to = { .p = close, .n = strlen(close) };
    size_t at = 0;
    for (;;) {
        const size_t start = qn_js_find(s, &from, at, s->n), end = start == SIZE_MAX ? SIZE_MAX : qn_js_find(s, &to, start, s->n);
        if (end == SIZE_MAX) break;
        if (!qn_jbuf_sub(&b, s, at, start)) return false;
        at = end + to.n;
    }
    return qn_jbuf_sub(&b, s, at, s->n) && (*out = qn_jbuf_done(&b));
}

bool qn_jfilter_striptags(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    const qn_jstr *s = qn_jv_to_str(vm, c->a[0]);
    qn_jlist words = { 0 };
    qn_jbuf b = { .vm = vm };
    if (!s || !without_tags(vm, s, "<!--", "-->", &s) || !without_tags(vm, s, "<", ">", &s)) return false;
    if (!qn_js_split(vm, s, false, NULL, -1, false, &words)) return false;
    for (size_t i = 0; i < words.n; i++) {
        const qn_jstr *w = words.v[i].s;
        if (i && !qn_jbuf_lit(&b, " ")) return false;
        for (size_t at = 0, n; at < w->n; at += n) {
            bool plain;
            qn_js_stretch(w, at, &plain);
            const int32_t e = w->p[at] == '&' ? entity(w->p + at, w->p + w->n, &n) : -1;
            if (e < 0) n = 1;
            if (e >= 0 ? !qn_jbuf_char(&b, e, plain) : !qn_jbuf_add(&b, w->p + at, 1, plain)) return false;
        }
    }
    return qn_jbuf_value(&b, false, out);
}

bool qn_jfilter_xmlattr(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jbuf b = { .vm = vm };
    if (c->a[0].type == QN_J_UNDEF) return qn_jv_undef_fail(vm, c->a[0]);
    if (c->a[0].type != QN_J_DICT) return qn_jvm_fail(vm, "'%s' object has no attribute 'items'", qn_jv_type_name(c->a[0]));
    const qn_jdict *d = c->a[0].d;
    bool space = !qn_jarg_given(c->a[1]) || qn_jv_truth(vm, c->a[1]);
    for (size_t i = 0; i < d->n; i++) {
        if (d->val[i].type == QN_J_NONE || d->val[i].type == QN_J_UNDEF) continue;
        const qn_jstr *raw = qn_jarg_str(vm, d->key[i]);
        if (!raw) return false;
        for (size_t k = 0; k < raw->n; k++)
            if (strchr(" \t\n\v\f\r/>=", raw->p[k])) return qn_jvm_fail(vm, "Invalid character in attribute name");
        const qn_jstr *key = qn_jv_escape(vm, d->key[i]), *val = qn_jv_escape(vm, d->val[i]);
        if (!key || !val || (space && !qn_jbuf_lit(&b, " "))) return false;
        if (!qn_jbuf_str(&b, key) || !qn_jbuf_lit(&b, "=\"") || !qn_jbuf_str(&b, val) || !qn_jbuf_lit(&b, "\"")) return false;
        space = true;
    }
    return qn_jbuf_value(&b, vm->autoescape, out);
}

/* ---- JSON, sizes, pprint ---- */

bool qn_jfilter_tojson(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jdump how = { .ensure_ascii = flag(vm, c->a[1]), .sort_keys = flag(vm, c->a[4]) };
    const qn_jval indent = c->a[2], sep = c->a[3];
    qn_jbuf b = { .vm = vm };
    if (qn_jarg_given(indent) && indent.type != QN_J_NONE && !indention(vm, indent, &how.indent)) return false;
    how.item_sep = qn_js_lit(vm, how.indent ? "," : ", ");
    how.key_sep = qn_js_lit(vm, ": ");
    if (qn_jarg_given(sep) && sep.type != QN_J_NONE) {
        qn_jlist *pair;
        if (!qn_jv_list(vm, sep, &pair)) return false;
        if (pair->n != 2) return qn_jvm_fail(vm, "separators must be a pair");
        how.item_sep = qn_jarg_str(vm, pair->v[0]);
        how.key_sep = how.item_sep ? qn_jarg_str(vm, pair->v[1]) : NULL;
    }
    return how.item_sep && how.key_sep && qn_jbuf_json(&b, c->a[0], &how, 0) && qn_jbuf_value(&b, false, out);
}

bool qn_jfilter_pprint(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jbuf b = { .vm = vm };
    return qn_jbuf_pretty(&b, c->a[0]) && qn_jbuf_value(&b, false, out);
}

bool qn_jfilter_filesizeformat(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    static const char units[] = "kMGTPEZY";
    const bool binary = flag(vm, c->a[1]);
    const double base = binary ? 1024 : 1000;
    double f;
    char text[QN_JNUM_MAX], line[QN_JNUM_MAX + 8];
    if (c->a[0].type == QN_J_UNDEF) return qn_jv_undef_fail(vm, c->a[0]);
    if (qn_jv_numeric(c->a[0])) f = qn_jv_as_float(c->a[0]);
    else if (c->a[0].type != QN_J_STR || !qn_jnum_float(c->a[0].s, &f)) return qn_jvm_fail(vm, "could not convert to a number of bytes");
    if (f == 1) {
        snprintf(line, sizeof line, "1 Byte");
    } else if (f < base) {
        if (!(f > -9e15)) return qn_jvm_fail(vm, "could not convert to a number of bytes");
        snprintf(line, sizeof line, "%" PRId64 " Bytes", (int64_t)f);
    } else {
        double unit = base * base;
        int i = 0;
        for (; i < 7 && !(f < unit); i++) unit *= base;
        qn_jnum_print(base * f / unit, 'f', 1, false, text);
        snprintf(line, sizeof line, "%s %c%sB", text, binary && i == 0 ? 'K' : units[i], binary ? "i" : "");
    }
    qn_jbuf b = { .vm = vm };
    return qn_jbuf_lit(&b, line) && qn_jbuf_value(&b, false, out);
}

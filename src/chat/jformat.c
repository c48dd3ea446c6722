/* Python's two ways of formatting: text % args, and text.format(...) with its format specifications. */
#include "src/chat/jfilter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_WIDTH = 1 << 24 }; /* more than any prompt needs */

/* ---- numbers as text ---- */

/* Digits of an integer in a base, without its sign. */
static size_t int_digits(uint64_t u, unsigned base, bool upper, char out[72])
{
    char back[72];
    size_t n = 0;
    do back[n++] = (upper ? "0123456789ABCDEF" : "0123456789abcdef")[u % base];
    while (u /= base);
    for (size_t i = 0; i < n; i++) out[i] = back[n - 1 - i];
    out[n] = 0;
    return n;
}

static uint64_t magnitude(int64_t i)
{
    return i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
}

/* A separator between groups of digits of the whole part. @param out [2 * QN_JNUM_MAX] */
static size_t group_digits(const char *text, size_t n, char sep, int every, char *out)
{
    size_t whole = 0, to = 0;
    while (whole < n && ((text[whole] >= '0' && text[whole] <= '9') || (every == 4 && text[whole] != '.'))) whole++;
    for (size_t i = 0; i < n; i++) {
        if (i && i < whole && (whole - i) % (size_t)every == 0) out[to++] = sep;
        out[to++] = text[i];
    }
    out[to] = 0;
    return to;
}

/* ---- format(v, spec) ---- */

typedef struct spec {
    const qn_jstr *fill;      /* one character                     */
    char align;               /* '<' '>' '^' '=' or 0              */
    char sign;                /* '+' '-' ' ' or 0                  */
    bool alternate, zero;
    int64_t width, precision; /* -1: none                          */
    char group;               /* ',' '_' or 0                      */
    char type;                /* or 0                              */
} spec;

static bool read_count(qn_jvm *vm, const qn_jstr *s, size_t *at, int64_t *out)
{
    *out = -1;
    while (*at < s->n && s->p[*at] >= '0' && s->p[*at] <= '9') {
        *out = (*out < 0 ? 0 : *out) * 10 + (s->p[(*at)++] - '0');
        if (*out > MAX_WIDTH) return qn_jvm_stop(vm, QN_ERR_LIMIT, "template line %d: a width beyond all bounds", (int)vm->line);
    }
    return true;
}

static bool is_align(char c)
{
    return c == '<' || c == '>' || c == '^' || c == '=';
}

static bool read_spec(qn_jvm *vm, const qn_jstr *s, spec *f)
{
    size_t at = 0, len = 1;
    *f = (spec){ .width = -1, .precision = -1 };
    if (s->n) qn_js_decode(s->p, s->p + s->n, &len);
    if (s->n > len && is_align(s->p[len])) {
        f->fill = qn_js_sub(vm, s, 0, len);
        if (!f->fill) return false;
        f->align = s->p[len];
        at = len + 1;
    } else if (s->n && is_align(s->p[0])) {
        f->align = s->p[at++];
    }
    if (at < s->n && strchr("+- ", s->p[at])) f->sign = s->p[at++];
    if (at < s->n && s->p[at] == 'z') at++;
    if (at < s->n && s->p[at] == '#') f->alternate = s->p[at++];
    if (at < s->n && s->p[at] == '0') f->zero = s->p[at++];
    if (!read_count(vm, s, &at, &f->width)) return false;
    if (at < s->n && (s->p[at] == ',' || s->p[at] == '_')) f->group = s->p[at++];
    if (at < s->n && s->p[at] == '.') {
        at++;
        if (!read_count(vm, s, &at, &f->precision)) return false;
        if (f->precision < 0) return qn_jvm_fail(vm, "Format specifier missing precision");
    }
    if (at < s->n) f->type = s->p[at++];
    if (at < s->n) return qn_jvm_fail(vm, "Invalid format specifier");
    return true;
}

/* Text within its width. @param sign  what '=' leaves at the left of the padding */
static bool put_padded(qn_jbuf *b, const spec *f, const char *sign, const qn_jstr *body, char align)
{
    const size_t have = strlen(sign) + qn_js_chars(body);
    const size_t pad = f->width > 0 && (uint64_t)f->width > have ? (size_t)f->width - have : 0;
    const char how = f->align ? f->align : align;
    const size_t left = how == '>' ? pad : how == '^' ? pad / 2 : 0, right = how == '=' ? 0 : pad - left;
    const qn_jstr *fill = f->fill ? f->fill : qn_js_lit(b->vm, f->zero && !f->align ? "0" : " ");
    if (!fill || !qn_jbuf_fill(b, fill, left) || !qn_jbuf_lit(b, sign)) return false;
    if (how == '=' && !qn_jbuf_fill(b, fill, pad)) return false;
    return qn_jbuf_str(b, body) && qn_jbuf_fill(b, fill, how == '=' ? 0 : right);
}

static bool put_number(qn_jbuf *b, const spec *f, bool minus, const char *prefix, const char *digits)
{
    char sign[8];
    snprintf(sign, sizeof sign, "%s%s", minus ? "-" : f->sign == '+' ? "+" : f->sign == ' ' ? " " : "", prefix);
    const qn_jstr *body = qn_js_lit(b->vm, digits);
    return body && put_padded(b, f, sign, body, f->zero ? '=' : '>');
}

static bool bad_type(qn_jvm *vm, char type, qn_jval v)
{
    return qn_jvm_fail(vm, "Unknown format code '%c' for object of type '%s'", type, qn_jv_type_name(v));
}

static bool format_int(qn_jbuf *b, const spec *f, qn_jval v)
{
    char text[72], grouped[2 * QN_JNUM_MAX];
    const char *prefix = "";
    const int64_t i = qn_jv_as_int(v);
    const char type = f->type ? f->type : 'd';
    if (f->precision >= 0) return qn_jvm_fail(b->vm, "Precision not allowed in integer format specifier");
    if (type == 'c') {
        qn_jbuf one = { .vm = b->vm };
        if (i < 0 || i > 0x10ffff) return qn_jvm_fail(b->vm, "%%c arg not in range(0x110000)");
        if (!qn_jbuf_char(&one, (int32_t)i, false)) return false;
        const qn_jstr *s = qn_jbuf_done(&one);
        return s && put_padded(b, f, "", s, '<');
    }
    const unsigned base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : type == 'd' || type == 'n' ? 10 : 0;
    if (!base) return bad_type(b->vm, type, v);
    if (f->alternate) prefix = type == 'x' ? "0x" : type == 'X' ? "0X" : type == 'o' ? "0o" : type == 'b' ? "0b" : "";
    const size_t n = int_digits(magnitude(i), base, type == 'X', text);
    if (f->group) group_digits(text, n, f->group, base == 10 ? 3 : 4, grouped);
    return put_number(b, f, i < 0, prefix, f->group ? grouped : text);
}

static bool format_float(qn_jbuf *b, const spec *f, qn_jval v)
{
    char text[QN_JNUM_MAX + 8], grouped[2 * QN_JNUM_MAX];
    double x = qn_jv_as_float(v);
    const char type = f->type == 'n' ? 'g' : f->type;
    if (f->precision > 60) return qn_jvm_stop(b->vm, QN_ERR_LIMIT, "template line %d: more than 60 digits", (int)b->vm->line);
    const int precision = f->precision < 0 ? 6 : (int)f->precision;
    size_t n;
    if (type && !strchr("eEfFgG%", type)) return bad_type(b->vm, type, v);
    if (!type && f->precision < 0) n = qn_jnum_repr(x, text);
    else if (type == '%') n = qn_jnum_print(x * 100, 'f', precision, f->alternate, text);
    else n = qn_jnum_print(x, type ? type : 'g', precision, f->alternate, text);
    if (!type && f->precision >= 0 && !strpbrk(text, ".einEIN")) n += (size_t)snprintf(text + n, 8, ".0"); /* a float shows that it is one */
    text[n] = 0;
    const bool minus = text[0] == '-';
    if (type == '%') snprintf(text + n, 8, "%%");
    if (!f->group) return put_number(b, f, minus, "", text + minus);
    group_digits(text + minus, strlen(text + minus), f->group, 3, grouped);
    return put_number(b, f, minus, "", grouped);
}

static bool format_text(qn_jbuf *b, const spec *f, qn_jval v)
{
    const qn_jstr *s = qn_jv_to_str(b->vm, v);
    if (!s) return false;
    if (f->type && f->type != 's') return bad_type(b->vm, f->type, v);
    if (f->sign || f->align == '=' || f->group) return qn_jvm_fail(b->vm, "not allowed in string format specifier");
    if (f->precision >= 0 && (uint64_t)f->precision < qn_js_chars(s)) s = qn_js_sub(b->vm, s, 0, qn_js_offset(s, (size_t)f->precision));
    return s && put_padded(b, f, "", s, '<');
}

bool qn_jformat_spec(qn_jbuf *b, qn_jval v, const qn_jstr *text)
{
    qn_jvm *vm = b->vm;
    spec f;
    if (!text->n) {
        const qn_jstr *s = qn_jv_to_str(vm, v);
        return s && qn_jbuf_str(b, s);
    }
    if (v.type != QN_J_STR && !qn_jv_numeric(v) && v.type != QN_J_BIG)
        return qn_jvm_fail(vm, "unsupported format string passed to %s.__format__", qn_jv_type_name(v));
    if (!read_spec(vm, text, &f)) return false;
    if (v.type == QN_J_STR || v.type == QN_J_BIG) return format_text(b, &f, v);
    const bool as_float = v.type == QN_J_FLOAT || (f.type && strchr("eEfFgG%", f.type));
    if (v.type == QN_J_BOOL && !f.type && f.width < 0) return format_text(b, &f, v);
    return as_float ? format_float(b, &f, v) : format_int(b, &f, v);
}

/* ---- text.format(...) ---- */

typedef struct braces {
    qn_jvm *vm;
    const qn_jargs *args;
    size_t n_auto;           /* fields without a number so far */
    bool numbered;           /* one with a number was there    */
    bool markup;             /* what goes in is escaped        */
} braces;

static bool is_number(const qn_jstr *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->p[i] < '0' || s->p[i] > '9') return false;
    return s->n > 0 && s->n < 10;
}

static size_t number_of(const qn_jstr *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) n = n * 10 + (size_t)(s->p[i] - '0');
    return n;
}

/* The argument that a field begins with: "", "0" or "name". */
static bool first_argument(braces *f, const qn_jstr *name, qn_jval *out)
{
    const qn_jargs *a = f->args;
    size_t i;
    if (!name->n || is_number(name)) {
        if (name->n ? f->n_auto > 0 : f->numbered)
            return qn_jvm_fail(f->vm, "cannot switch between manual field specification and automatic field numbering");
        if (name->n) f->numbered = true;
        i = name->n ? number_of(name) : f->n_auto++;
        if (i >= a->n_pos) return qn_jvm_fail(f->vm, "Replacement index %zu out of range for positional args tuple", i);
        *out = a->pos[i];
        return true;
    }
    for (i = 0; i < a->n_kw; i++)
        if (qn_js_eq(a->name[i], name)) return *out = a->kw[i], true;
    return qn_jvm_fail(f->vm, "KeyError: '%.*s'", QN_STR_ARG(((qn_str){ name->p, name->n })));
}

/* "name.attr[key]" */
static bool field_value(braces *f, const qn_jstr *s, qn_jval *out)
{
    size_t at = 0;
    while (at < s->n && s->p[at] != '.' && s->p[at] != '[') at++;
    const qn_jstr *name = qn_js_sub(f->vm, s, 0, at);
    if (!name || !first_argument(f, name, out)) return false;
    while (at < s->n) {
        const bool attr = s->p[at] == '.';
        const size_t from = ++at;
        while (at < s->n && (attr ? s->p[at] != '.' && s->p[at] != '[' : s->p[at] != ']')) at++;
        if (at == from) return qn_jvm_fail(f->vm, "Empty attribute in format string");
        if (!attr && at == s->n) return qn_jvm_fail(f->vm, "Missing ']' in format string");
        const qn_jstr *key = qn_js_sub(f->vm, s, from, at);
        if (!key) return false;
        if (attr ? !qn_jattr_get(f->vm, *out, key, out)
                 : !qn_jattr_item(f->vm, *out, is_number(key) ? qn_jv_int((int64_t)number_of(key)) : qn_jv_str(key), out)) return false;
        if (!attr) at++;
        if (!attr && at < s->n && s->p[at] != '.' && s->p[at] != '[')
            return qn_jvm_fail(f->vm, "Only '.' or '[' may follow ']' in format field specifier");
    }
    return true;
}

static bool expand(braces *f, const qn_jstr *s, int depth, qn_jbuf *b);

/* !r !s !a */
static bool converted(qn_jvm *vm, char how, qn_jval *v)
{
    qn_jbuf b = { .vm = vm };
    if (how == 's') {
        const qn_jstr *s = qn_jv_to_str(vm, *v);
        if (s) *v = qn_jv_text(s, v->type == QN_J_STR && v->markup);
        return s;
    }
    if (how != 'r' && how != 'a') return qn_jvm_fail(vm, "Unknown conversion specifier '%c'", how);
    if (how == 'a' && v->type == QN_J_STR) return qn_jbuf_repr_str(&b, v->s, true) && qn_jbuf_value(&b, false, v);
    return qn_jbuf_repr(&b, *v) && qn_jbuf_value(&b, false, v);
}

/* What stands between the braces. */
static bool put_field(braces *f, const qn_jstr *s, int depth, qn_jbuf *b)
{
    size_t name = 0, in_key = 0;
    qn_jval v;
    qn_jbuf inner = { .vm = f->vm };
    for (; name < s->n; name++) {
        if (s->p[name] == '[') in_key = 1;
        else if (s->p[name] == ']') in_key = 0;
        else if (!in_key && (s->p[name] == '!' || s->p[name] == ':')) break;
    }
    const qn_jstr *field = qn_js_sub(f->vm, s, 0, name);
    if (!field || !field_value(f, field, &v)) return false;
    if (name < s->n && s->p[name] == '!') {
        if (name + 1 >= s->n) return qn_jvm_fail(f->vm, "end of string while looking for conversion specifier");
        if (!converted(f->vm, s->p[name + 1], &v)) return false;
        name += 2;
        if (name < s->n && s->p[name] != ':') return qn_jvm_fail(f->vm, "expected ':' after conversion specifier");
    }
    const qn_jstr *rest = qn_js_sub(f->vm, s, name < s->n ? name + 1 : s->n, s->n);
    if (!rest || !expand(f, rest, depth + 1, &inner)) return false;
    const qn_jstr *how = qn_jbuf_done(&inner);
    if (!how || !f->markup) return how && qn_jformat_spec(b, v, how);
    qn_jbuf shown = { .vm = f->vm };
    qn_jval text;
    if (!qn_jformat_spec(&shown, v, how) || !qn_jbuf_value(&shown, v.type == QN_J_STR && v.markup, &text)) return false;
    const qn_jstr *safe = qn_jv_escape(f->vm, text);
    return safe && qn_jbuf_str(b, safe);
}

static bool expand(braces *f, const qn_jstr *s, int depth, qn_jbuf *b)
{
    if (depth > 2) return qn_jvm_fail(f->vm, "Max string recursion exceeded");
    for (size_t at = 0; at < s->n;) {
        const char c = s->p[at];
        size_t end = at;
        if (c != '{' && c != '}') {
            while (end < s->n && s->p[end] != '{' && s->p[end] != '}') end++;
            if (!qn_jbuf_sub(b, s, at, end)) return false;
            at = end;
            continue;
        }
        if (at + 1 < s->n && s->p[at + 1] == c) { /* "{{" */
            if (!qn_jbuf_sub(b, s, at, at + 1)) return false;
            at += 2;
            continue;
        }
        if (c == '}') return qn_jvm_fail(f->vm, "Single '}' encountered in format string");
        int open = 1;
        for (end = at + 1; end < s->n && open; end++) open += (s->p[end] == '{') - (s->p[end] == '}');
        if (open) return qn_jvm_fail(f->vm, "expected '}' before end of string");
        const qn_jstr *field = qn_js_sub(f->vm, s, at + 1, end - 1);
        if (!field || !qn_jvm_charge(f->vm, 1) || !put_field(f, field, depth, b)) return false;
        at = end;
    }
    return true;
}

bool qn_jformat_braces(qn_jvm *vm, qn_jval text, const qn_jargs *args, qn_jval *out)
{
    braces f = { .vm = vm, .args = args, .markup = text.markup };
    qn_jbuf b = { .vm = vm };
    return expand(&f, text.s, 0, &b) && qn_jbuf_value(&b, text.markup, out);
}

/* ---- text % args ---- */

typedef struct percent {
    qn_jvm *vm;
    qn_jval args;
    size_t i_arg;
    bool named, markup; /* markup: what goes in is escaped */
} percent;

static bool next_arg(percent *p, qn_jval *out)
{
    const bool tuple = p->args.type == QN_J_TUPLE;
    if (p->i_arg >= (tuple ? p->args.l->n : 1)) return qn_jvm_fail(p->vm, "not enough arguments for format string");
    *out = tuple ? p->args.l->v[p->i_arg] : p->args;
    p->i_arg++;
    return true;
}

static bool count_or_star(percent *p, const qn_jstr *s, size_t *at, int64_t *out)
{
    qn_jval v;
    if (*at >= s->n || s->p[*at] != '*') return read_count(p->vm, s, at, out);
    ++*at;
    if (!next_arg(p, &v)) return false;
    if (!qn_jv_integral(v)) return qn_jvm_fail(p->vm, "* wants int");
    *out = qn_jv_as_int(v);
    if (*out < -MAX_WIDTH || *out > MAX_WIDTH) return qn_jvm_stop(p->vm, QN_ERR_LIMIT, "template line %d: a width beyond all bounds", (int)p->vm->line);
    return true;
}

static bool percent_number(percent *p, spec *f, char type, qn_jval v, qn_jbuf *b)
{
    const bool whole = strchr("diu", type) || strchr("oxX", type);
    if (!qn_jv_numeric(v) && v.type != QN_J_BIG)
        return qn_jvm_fail(p->vm, "%%%c format: a real number is required, not %s", type, qn_jv_type_name(v));
    if (v.type == QN_J_BIG && whole) return format_text(b, f, v);
    if (v.type == QN_J_BIG) v = qn_jv_float(qn_jnum_parse(v.s->p, v.s->n));
    if (!whole) return f->type = type, format_float(b, f, v);
    if (v.type == QN_J_FLOAT && !strchr("diu", type)) return qn_jvm_fail(p->vm, "%%%c format: an integer is required, not float", type);
    if (v.type == QN_J_FLOAT && !qn_jnum_trunc(p->vm, v.f, &v)) return false;
    if (v.type == QN_J_BIG) return format_text(b, f, v);
    f->type = strchr("diu", type) ? 'd' : type;
    if (f->precision >= 0 && f->width < 0) { /* "%.3d": at least so many digits */
        f->zero = true;
        f->width = f->precision + (f->sign || qn_jv_as_int(v) < 0);
    }
    f->precision = -1;
    return format_int(b, f, v);
}

static bool percent_value(percent *p, spec *f, char type, qn_jval v, qn_jbuf *b)
{
    switch (type) {
    case 's': case 'r': case 'a':
        if (!converted(p->vm, type, &v)) return false;
        if (p->markup && !(v.s = qn_jv_escape(p->vm, v))) return false;
        if (!f->align) f->align = '>';
        f->zero = false;
        f->sign = 0;
        return format_text(b, f, v);
    case 'c':
        if (!f->align) f->align = '>';
        if (v.type == QN_J_STR && qn_js_chars(v.s) == 1) return format_text(b, f, v);
        if (!qn_jv_integral(v)) return qn_jvm_fail(p->vm, "%%c requires int or char");
        f->type = 'c';
        f->precision = -1;
        return format_int(b, f, v);
    case 'd': case 'i': case 'u': case 'o': case 'x': case 'X': case 'e': case 'E': case 'f': case 'F': case 'g': case 'G':
        return percent_number(p, f, type, v, b);
    default: return qn_jvm_fail(p->vm, "unsupported format character '%c' (0x%x)", type, (unsigned)(unsigned char)type);
    }
}

static bool read_flags(percent *p, const qn_jstr *s, size_t *at, spec *f)
{
    for (; *at < s->n && strchr("#0- +", s->p[*at]) && s->p[*at]; ++*at) {
        const char c = s->p[*at];
        if (c == '#') f->alternate = true;
        else if (c == '0') f->zero = true;
        else if (c == '-') f->align = '<';
        else if (c == '+' || f->sign != '+') f->sign = c;
    }
    if (!count_or_star(p, s, at, &f->width)) return false;
    if (f->width < -1) {
        f->align = '<';
        f->width = -f->width;
    }
    if (*at < s->n && s->p[*at] == '.') {
        ++*at;
        if (!count_or_star(p, s, at, &f->precision)) return false;
        if (f->precision < 0) f->precision = 0;
    }
    while (*at < s->n && s->p[*at] && strchr("hlL", s->p[*at])) ++*at;
    if (f->align == '<') f->zero = false;
    return true;
}

/* Behind the '%'. */
static bool put_percent(percent *p, const qn_jstr *s, size_t *at, qn_jbuf *b)
{
    spec f = { .width = -1, .precision = -1 };
    qn_jval v = { 0 };
    const qn_jval *found;
    if (*at < s->n && s->p[*at] == '(') {
        const size_t from = ++*at;
        while (*at < s->n && s->p[*at] != ')') ++*at;
        if (*at == s->n) return qn_jvm_fail(p->vm, "incomplete format key");
        const qn_jstr *key = qn_js_sub(p->vm, s, from, (*at)++);
        if (!key) return false;
        if (p->args.type != QN_J_DICT) return qn_jvm_fail(p->vm, "format requires a mapping");
        if (!qn_jd_get(p->vm, p->args.d, qn_jv_str(key), &found)) return false;
        if (!found) return qn_jvm_fail(p->vm, "KeyError: '%.*s'", QN_STR_ARG(((qn_str){ key->p, key->n })));
        v = *found;
        p->named = true;
    }
    if (!read_flags(p, s, at, &f)) return false;
    if (*at == s->n) return qn_jvm_fail(p->vm, "incomplete format");
    const char type = s->p[(*at)++];
    if (type == '%') return qn_jbuf_lit(b, "%");
    if (v.type == QN_J_MISSING && !next_arg(p, &v)) return false;
    return percent_value(p, &f, type, v, b);
}

bool qn_jformat_percent(qn_jvm *vm, qn_jval text, qn_jval args, qn_jval *out)
{
    percent p = { .vm = vm, .args = args, .markup = text.markup };
    qn_jbuf b = { .vm = vm };
    const qn_jstr *s = text.s;
    for (size_t at = 0; at < s->n;) {
        const char *hit = memchr(s->p + at, '%', s->n - at);
        const size_t to = hit ? (size_t)(hit - s->p) : s->n;
        if (!qn_jbuf_sub(&b, s, at, to)) return false;
        at = to + 1;
        if (hit && (!qn_jvm_charge(vm, 1) || !put_percent(&p, s, &at, &b))) return false;
    }
    /* What has items by key passes for a mapping in Python, and a mapping may hold more than the text asks for. */
    const bool mapping = args.type == QN_J_DICT || args.type == QN_J_LIST || args.type == QN_J_RANGE || args.type == QN_J_UNDEF;
    const size_t n_args = args.type == QN_J_TUPLE ? args.l->n : mapping ? 0 : 1;
    if (!p.named && p.i_arg < n_args) return qn_jvm_fail(vm, "not all arguments converted during string formatting");
    return qn_jbuf_value(&b, text.markup, out);
}

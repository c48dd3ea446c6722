/* The methods of str. */
#include "src/chat/jmethod.h"

#include <string.h>
#include <utf8proc.h>

static bool give(qn_jvm *vm, const qn_jcall *c, size_t from, size_t to, qn_jval *out)
{
    const qn_jstr *s = qn_js_sub(vm, c->a[0].s, from, to);
    if (s) *out = qn_jv_text(s, c->a[0].markup);
    return s;
}

/* ---- case ---- */

static bool cased(qn_jvm *vm, const qn_jcall *c, int how, qn_jval *out)
{
    qn_jbuf b = { .vm = vm };
    return qn_jbuf_case(&b, c->a[0].s, how) && qn_jbuf_value(&b, c->a[0].markup, out);
}

static bool str_upper(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return cased(vm, c, QN_JCASE_UPPER, out);
}

static bool str_lower(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return cased(vm, c, QN_JCASE_LOWER, out);
}

static bool str_title(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return cased(vm, c, QN_JCASE_TITLE, out);
}

static bool str_capitalize(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return cased(vm, c, QN_JCASE_CAPITALIZE, out);
}

static bool str_swapcase(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return cased(vm, c, QN_JCASE_SWAP, out);
}

static bool str_casefold(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return cased(vm, c, QN_JCASE_FOLD, out);
}

/* ---- strip, split, join, replace ---- */

static bool strip(qn_jvm *vm, const qn_jcall *c, bool left, bool right, qn_jval *out)
{
    const qn_jstr *chars = NULL;
    size_t from, to;
    if (qn_jarg_given(c->a[1]) && c->a[1].type != QN_J_NONE) {
        if (c->a[1].type != QN_J_STR) return qn_jvm_fail(vm, "%s arg must be None or str", c->fn->name);
        chars = c->a[1].s;
    }
    qn_js_strip(c->a[0].s, chars, left, right, &from, &to);
    return give(vm, c, from, to, out);
}

static bool str_strip(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return strip(vm, c, true, true, out);
}

static bool str_lstrip(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return strip(vm, c, true, false, out);
}

static bool str_rstrip(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return strip(vm, c, false, true, out);
}

static bool split(qn_jvm *vm, const qn_jcall *c, bool back, qn_jval *out)
{
    const qn_jstr *sep = NULL;
    int64_t n_max;
    qn_jlist *l = qn_jl_new(vm, 0);
    if (!l || !qn_jarg_int_or(vm, c->a[2], -1, &n_max)) return false;
    if (qn_jarg_given(c->a[1]) && c->a[1].type != QN_J_NONE && !(sep = qn_jarg_str(vm, c->a[1]))) return false;
    if (!qn_js_split(vm, c->a[0].s, c->a[0].markup, sep, n_max < 0 ? -1 : n_max, back, l)) return false;
    *out = QN_JV(QN_J_LIST, l, l);
    return true;
}

static bool str_split(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return split(vm, c, false, out);
}

static bool str_rsplit(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return split(vm, c, true, out);
}

static bool str_splitlines(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jlist *l = qn_jl_new(vm, 0);
    const bool keep = qn_jarg_given(c->a[1]) && qn_jv_truth(vm, c->a[1]);
    if (!l || !qn_js_lines(vm, c->a[0].s, c->a[0].markup, keep, l)) return false;
    *out = QN_JV(QN_J_LIST, l, l);
    return true;
}

static bool partition(qn_jvm *vm, const qn_jcall *c, bool back, qn_jval *out)
{
    const qn_jstr *s = c->a[0].s, *sep = qn_jarg_str(vm, c->a[1]), *empty = qn_js_lit(vm, "");
    qn_jlist *l = qn_jl_new(vm, 3);
    if (!sep || !empty || !l) return false;
    if (!sep->n) return qn_jvm_fail(vm, "empty separator");
    const size_t hit = back ? qn_js_rfind(s, sep, 0, s->n) : qn_js_find(s, sep, 0, s->n);
    const qn_jstr *part[3] = { back ? empty : s, empty, back ? s : empty };
    if (hit != SIZE_MAX) {
        part[0] = qn_js_sub(vm, s, 0, hit);
        part[1] = qn_js_sub(vm, s, hit, hit + sep->n);
        part[2] = qn_js_sub(vm, s, hit + sep->n, s->n);
    }
    for (int i = 0; i < 3; i++) {
        if (!part[i]) return false;
        l->v[l->n++] = qn_jv_text(part[i], c->a[0].markup);
    }
    *out = QN_JV(QN_J_TUPLE, l, l);
    return qn_jvm_charge(vm, s->n / 64);
}

static bool str_partition(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return partition(vm, c, false, out);
}

static bool str_rpartition(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return partition(vm, c, true, out);
}

static bool str_join(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jseq q;
    qn_jbuf b = { .vm = vm };
    const bool markup = c->a[0].markup;
    if (!qn_jv_iterable(c->a[1])) return qn_jvm_fail(vm, "can only join an iterable");
    if (!qn_jv_seq(vm, c->a[1], &q)) return false;
    for (size_t i = 0; i < q.n; i++) {
        qn_jval v;
        if (!qn_jseq_at(vm, &q, i, &v)) return false;
        if (v.type != QN_J_STR && !markup)
            return qn_jvm_fail(vm, "sequence item %zu: expected str instance, %s found", i, qn_jv_type_name(v));
        const qn_jstr *s = markup ? qn_jv_escape(vm, v) : v.s;
        if (!s || (i && !qn_jbuf_str(&b, c->a[0].s)) || !qn_jbuf_str(&b, s)) return false;
    }
    return qn_jbuf_value(&b, markup, out);
}

static bool str_replace(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    int64_t count;
    qn_jbuf b = { .vm = vm };
    const qn_jstr *old = qn_jarg_str(vm, c->a[1]), *fresh = old ? qn_jarg_str(vm, c->a[2]) : NULL;
    if (fresh && c->a[0].markup) fresh = qn_jv_escape(vm, c->a[2]);
    if (!fresh || !qn_jarg_int_or(vm, c->a[3], -1, &count)) return false;
    return qn_js_replace(vm, c->a[0].s, old, fresh, count, &b) && qn_jbuf_value(&b, c->a[0].markup, out);
}

static bool str_removeprefix(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    const qn_jstr *s = c->a[0].s, *p = qn_jarg_str(vm, c->a[1]);
    if (!p) return false;
    const bool hit = p->n <= s->n && !memcmp(s->p, p->p, p->n);
    return give(vm, c, hit ? p->n : 0, s->n, out);
}

static bool str_removesuffix(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    const qn_jstr *s = c->a[0].s, *p = qn_jarg_str(vm, c->a[1]);
    if (!p) return false;
    const bool hit = p->n <= s->n && !memcmp(s->p + s->n - p->n, p->p, p->n);
    return give(vm, c, 0, hit ? s->n - p->n : s->n, out);
}

/* ---- searching: start and end count characters, as in slices ---- */

static bool span(qn_jvm *vm, const qn_jcall *c, size_t *from, size_t *to, bool *empty)
{
    const int64_t len = (int64_t)qn_js_chars(c->a[0].s);
    int64_t lo = 0, hi = len;
    if (c->a[2].type != QN_J_NONE && !qn_jarg_int_or(vm, c->a[2], 0, &lo)) return false;
    if (c->a[3].type != QN_J_NONE && !qn_jarg_int_or(vm, c->a[3], len, &hi)) return false;
    if (hi > len) hi = len;
    if (hi < 0) hi = hi < -len ? 0 : hi + len;
    if (lo < 0) lo = lo < -len ? 0 : lo + len;
    *empty = lo > hi;
    *from = *empty ? 0 : qn_js_offset(c->a[0].s, (size_t)lo);
    *to = *empty ? 0 : qn_js_offset(c->a[0].s, (size_t)hi);
    return qn_jvm_charge(vm, c->a[0].s->n / 64);
}

static bool find(qn_jvm *vm, const qn_jcall *c, bool back, bool must, qn_jval *out)
{
    size_t from, to;
    bool empty;
    const qn_jstr *s = c->a[0].s, *sub = qn_jarg_str(vm, c->a[1]);
    if (!sub || !span(vm, c, &from, &to, &empty)) return false;
    const size_t hit = empty ? SIZE_MAX : back ? qn_js_rfind(s, sub, from, to) : qn_js_find(s, sub, from, to);
    if (hit == SIZE_MAX && must) return qn_jvm_fail(vm, "substring not found");
    const qn_jstr head = { .p = s->p, .n = hit == SIZE_MAX ? 0 : hit, .n_chars = SIZE_MAX };
    *out = qn_jv_int(hit == SIZE_MAX ? -1 : (int64_t)qn_js_chars(&head));
    return true;
}

static bool str_find(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return find(vm, c, false, false, out);
}

static bool str_rfind(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return find(vm, c, true, false, out);
}

static bool str_index(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return find(vm, c, false, true, out);
}

static bool str_rindex(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return find(vm, c, true, true, out);
}

static bool str_count(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    size_t from, to;
    bool empty;
    const qn_jstr *s = c->a[0].s, *sub = qn_jarg_str(vm, c->a[1]);
    int64_t n = 0;
    if (!sub || !span(vm, c, &from, &to, &empty)) return false;
    const qn_jstr part = { .p = s->p + from, .n = to - from, .n_chars = SIZE_MAX };
    if (!sub->n) n = empty ? 0 : (int64_t)qn_js_chars(&part) + 1;
    for (size_t at; sub->n && !empty && (at = qn_js_find(s, sub, from, to)) != SIZE_MAX; n++) from = at + sub->n;
    *out = qn_jv_int(n);
    return true;
}

static bool affix(qn_jvm *vm, const qn_jcall *c, bool at_end, qn_jval *out)
{
    size_t from, to;
    bool empty, yes = false;
    const qn_jlist one = { .v = (qn_jval *)(uintptr_t)&c->a[1], .n = 1 };
    const qn_jlist *l = c->a[1].type == QN_J_TUPLE ? c->a[1].l : &one;
    if (!span(vm, c, &from, &to, &empty)) return false;
    for (size_t i = 0; i < l->n; i++) {
        if (l->v[i].type != QN_J_STR)
            return qn_jvm_fail(vm, "%s first arg must be str or a tuple of str, not %s", c->fn->name, qn_jv_type_name(l->v[i]));
        const qn_jstr *a = l->v[i].s;
        yes = yes || (!empty && a->n <= to - from && !memcmp(c->a[0].s->p + (at_end ? to - a->n : from), a->p, a->n));
    }
    *out = qn_jv_bool(yes);
    return true;
}

static bool str_startswith(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return affix(vm, c, false, out);
}

static bool str_endswith(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return affix(vm, c, true, out);
}

/* ---- padding ---- */

static bool pad_args(qn_jvm *vm, const qn_jcall *c, int64_t *room, const qn_jstr **fill)
{
    int64_t width;
    *fill = NULL;
    if (!qn_jarg_int(vm, c->a[1], &width)) return false;
    const int64_t len = (int64_t)qn_js_chars(c->a[0].s);
    *room = width > len ? width - len : 0;
    return !qn_jarg_given(c->a[2]) || (*fill = qn_jarg_str(vm, c->a[2]));
}

static bool str_ljust(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    int64_t room;
    const qn_jstr *fill;
    return pad_args(vm, c, &room, &fill) && qn_js_pad(vm, c->a[0], 0, room, fill, out);
}

static bool str_rjust(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    int64_t room;
    const qn_jstr *fill;
    return pad_args(vm, c, &room, &fill) && qn_js_pad(vm, c->a[0], room, 0, fill, out);
}

static bool str_center(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    int64_t room;
    const qn_jstr *fill;
    return pad_args(vm, c, &room, &fill) && qn_js_center(vm, c->a[0], room + (int64_t)qn_js_chars(c->a[0].s), fill, out);
}

static bool str_zfill(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    int64_t room;
    const qn_jstr *s = c->a[0].s, *fill, zero = { .p = "0", .n = 1, .n_chars = 1 };
    qn_jbuf b = { .vm = vm };
    if (!pad_args(vm, c, &room, &fill)) return false;
    const size_t sign = s->n && (s->p[0] == '-' || s->p[0] == '+');
    return qn_jbuf_sub(&b, s, 0, sign) && qn_jbuf_fill(&b, &zero, (size_t)room) && qn_jbuf_sub(&b, s, sign, s->n) &&
           qn_jbuf_value(&b, c->a[0].markup, out);
}

static bool str_expandtabs(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    const qn_jstr *s = c->a[0].s, space = { .p = " ", .n = 1, .n_chars = 1 };
    int64_t size, column = 0;
    qn_jbuf b = { .vm = vm };
    if (!qn_jarg_int_or(vm, c->a[1], 8, &size)) return false;
    for (size_t at = 0, n; at < s->n; at += n) {
        const int32_t ch = qn_js_decode(s->p + at, s->p + s->n, &n);
        if (ch == '\t') {
            const int64_t room = size > 0 ? size - column % size : 0;
            if (!qn_jbuf_fill(&b, &space, (size_t)room)) return false;
            column += room;
            continue;
        }
        if (!qn_jbuf_sub(&b, s, at, at + n)) return false;
        column = ch == '\n' || ch == '\r' ? 0 : column + 1;
    }
    return qn_jbuf_value(&b, c->a[0].markup, out);
}

/* ---- what a text consists of ---- */

static bool alpha(int32_t c)
{
    if (c & QN_J_BYTE) return false;
    const utf8proc_category_t k = utf8proc_category(c);
    return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

static bool decimal(int32_t c)
{
    return !(c & QN_J_BYTE) && utf8proc_category(c) == UTF8PROC_CATEGORY_ND;
}

/* Decimals, and digits in other dress: superscripts, circles. */
static bool digit(int32_t c)
{
    return decimal(c) || c == 0xb2 || c == 0xb3 || c == 0xb9 || c == 0x2070 || (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089) ||
           (c >= 0x2460 && c <= 0x2468) || (c >= 0x2474 && c <= 0x247c) || (c >= 0x2488 && c <= 0x2490) || (c >= 0x2776 && c <= 0x277e);
}

static bool numeric(int32_t c)
{
    if (c & QN_J_BYTE) return false;
    const utf8proc_category_t k = utf8proc_category(c);
    return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO;
}

static bool alnum(int32_t c)
{
    return alpha(c) || numeric(c);
}

static bool lower_case(int32_t c)
{
    if (c & QN_J_BYTE) return false;
    return utf8proc_category(c) == UTF8PROC_CATEGORY_LL || c == 0xaa || c == 0xba || (c >= 0x2b0 && c <= 0x2b8) || c == 0x2c0 || c == 0x2c1 ||
           (c >= 0x2e0 && c <= 0x2e4) || (c >= 0x2170 && c <= 0x217f) || (c >= 0x24d0 && c <= 0x24e9);
}

static bool upper_case(int32_t c)
{
    if (c & QN_J_BYTE) return false;
    return utf8proc_category(c) == UTF8PROC_CATEGORY_LU || (c >= 0x2160 && c <= 0x216f) || (c >= 0x24b6 && c <= 0x24cf);
}

static bool title_case(int32_t c)
{
    return !(c & QN_J_BYTE) && utf8proc_category(c) == UTF8PROC_CATEGORY_LT;
}

static bool ascii(int32_t c)
{
    return c < 0x80;
}

static bool all(const qn_jcall *c, bool (*is)(int32_t), bool when_empty, qn_jval *out)
{
    const qn_jstr *s = c->a[0].s;
    bool yes = s->n || when_empty;
    for (size_t at = 0, n; yes && at < s->n; at += n) yes = is(qn_js_decode(s->p + at, s->p + s->n, &n));
    *out = qn_jv_bool(yes);
    return true;
}

#define STR_ALL(name, is, when_empty)                                        \
    static bool str_##name(qn_jvm *vm, qn_jcall *c, qn_jval *out)            \
    {                                                                        \
        (void)vm;                                                            \
        return all(c, is, when_empty, out);                                  \
    }
STR_ALL(isalpha, alpha, false)
STR_ALL(isdecimal, decimal, false)
STR_ALL(isdigit, digit, false)
STR_ALL(isnumeric, numeric, false)
STR_ALL(isalnum, alnum, false)
STR_ALL(isspace, qn_js_space, false)
STR_ALL(isascii, ascii, true)

bool qn_js_is_case(const qn_jstr *s, bool upper)
{
    bool some = false;
    for (size_t at = 0, n; at < s->n; at += n) {
        const int32_t c = qn_js_decode(s->p + at, s->p + s->n, &n);
        if ((upper ? lower_case(c) : upper_case(c)) || title_case(c)) return false;
        some = some || (upper ? upper_case(c) : lower_case(c));
    }
    return some;
}

static bool str_islower(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    (void)vm;
    *out = qn_jv_bool(qn_js_is_case(c->a[0].s, false));
    return true;
}

static bool str_isupper(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    (void)vm;
    *out = qn_jv_bool(qn_js_is_case(c->a[0].s, true));
    return true;
}

static bool str_istitle(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    const qn_jstr *s = c->a[0].s;
    bool inside = false, some = false, yes = true;
    (void)vm;
    for (size_t at = 0, n; yes && at < s->n; at += n) {
        const int32_t ch = qn_js_decode(s->p + at, s->p + s->n, &n);
        const bool up = upper_case(ch) || title_case(ch), low = lower_case(ch);
        yes = up ? !inside : low ? inside : true;
        inside = up || low;
        some = some || inside;
    }
    *out = qn_jv_bool(yes && some);
    return true;
}

static bool str_isidentifier(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    const qn_jstr *s = c->a[0].s;
    bool yes = s->n > 0;
    (void)vm;
    for (size_t at = 0, n; yes && at < s->n; at += n) {
        const int32_t ch = qn_js_decode(s->p + at, s->p + s->n, &n);
        yes = alpha(ch) || ch == '_' || (at > 0 && decimal(ch));
    }
    *out = qn_jv_bool(yes);
    return true;
}

/* repr() leaves printable text as it is, but for its quotes and backslashes. */
static bool str_isprintable(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    const qn_jstr *s = c->a[0].s;
    qn_jbuf b = { .vm = vm };
    size_t more = 2;
    if (!qn_jbuf_repr_str(&b, s, false)) return false;
    for (size_t i = 0; i < s->n; i++) more += s->p[i] == '\\' || (s->p[i] == '\'' && b.p[0] == '\'');
    *out = qn_jv_bool(b.n == s->n + more);
    return true;
}

/* ---- formatting ---- */

static bool str_format(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return qn_jformat_braces(vm, c->a[0], c->raw, out);
}

static bool str_format_map(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    if (c->a[1].type != QN_J_DICT) return qn_jvm_fail(vm, "format_map needs a dict, not %s", qn_jv_type_name(c->a[1]));
    const qn_jdict *d = c->a[1].d;
    qn_jargs args = { 0 };
    const qn_jstr **name = qn_jvm_new(vm, d->n, sizeof *name);
    if (!name) return false;
    args.kw = d->val;
    args.name = name;
    for (size_t i = 0; i < d->n; i++)
        if (!(name[args.n_kw++] = qn_jarg_str(vm, d->key[i]))) return false;
    return qn_jformat_braces(vm, c->a[0], &args, out);
}

static bool str_refused(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    (void)out;
    return qn_jvm_fail(vm, "the method '%s' of str is not supported", c->fn->name);
}

const qn_jfn qn_jmethods_str[] = {
    { "capitalize", "self", str_capitalize },
    { "casefold", "self", str_casefold },
    { "center", "self,,?", str_center },
    { "count", "self,,?,?", str_count },
    { "encode", "self,encoding?,errors?", str_refused },
    { "endswith", "self,,?,?", str_endswith },
    { "expandtabs", "self,tabsize?", str_expandtabs },
    { "find", "self,,?,?", str_find },
    { "format", "self,*", str_format },
    { "format_map", "self,", str_format_map },
    { "index", "self,,?,?", str_index },
    { "isalnum", "self", str_isalnum },
    { "isalpha", "self", str_isalpha },
    { "isascii", "self", str_isascii },
    { "isdecimal", "self", str_isdecimal },
    { "isdigit", "self", str_isdigit },
    { "isidentifier", "self", str_isidentifier },
    { "islower", "self", str_islower },
    { "isnumeric", "self", str_isnumeric },
    { "isprintable", "self", str_isprintable },
    { "isspace", "self", str_isspace },
    { "istitle", "self", str_istitle },
    { "isupper", "self", str_isupper },
    { "join", "self,", str_join },
    { "ljust", "self,,?", str_ljust },
    { "lower", "self", str_lower },
    { "lstrip", "self,?", str_lstrip },
    { "maketrans", "self,*", str_refused },
    { "partition", "self,", str_partition },
    { "removeprefix", "self,", str_removeprefix },
    { "removesuffix", "self,", str_removesuffix },
    { "replace", "self,,,?", str_replace },
    { "rfind", "self,,?,?", str_rfind },
    { "rindex", "self,,?,?", str_rindex },
    { "rjust", "self,,?", str_rjust },
    { "rpartition", "self,", str_rpartition },
    { "rsplit", "self,sep?,maxsplit?", str_rsplit },
    { "rstrip", "self,?", str_rstrip },
    { "split", "self,sep?,maxsplit?", str_split },
    { "splitlines", "self,keepends?", str_splitlines },
    { "startswith", "self,,?,?", str_startswith },
    { "strip", "self,?", str_strip },
    { "swapcase", "self", str_swapcase },
    { "title", "self", str_title },
    { "translate", "self,", str_refused },
    { "upper", "self", str_upper },
    { "zfill", "self,", str_zfill },
    { NULL, NULL, NULL },
};

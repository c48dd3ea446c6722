#include "src/chat/jvm.h"

#include <math.h>
#include <string.h>

const char *qn_jv_type_name(qn_jval v)
{
    static const char *const names[] = {
        [QN_J_MISSING] = "missing", [QN_J_UNDEF] = "Undefined", [QN_J_NONE] = "NoneType", [QN_J_BOOL] = "bool", [QN_J_INT] = "int",
        [QN_J_BIG] = "int", [QN_J_FLOAT] = "float", [QN_J_STR] = "str", [QN_J_LIST] = "list", [QN_J_TUPLE] = "tuple", [QN_J_DICT] = "dict",
        [QN_J_VIEW] = "dict_items", [QN_J_RANGE] = "range", [QN_J_GEN] = "generator", [QN_J_SPACE] = "Namespace", [QN_J_MACRO] = "Macro",
        [QN_J_NATIVE] = "function", [QN_J_LOOP] = "LoopContext", [QN_J_CYCLER] = "Cycler", [QN_J_JOINER] = "Joiner",
        [QN_J_BLOCKS] = "TemplateReference", [QN_J_BLOCK] = "BlockReference",
    };
    if (v.type == QN_J_STR && v.markup) return "Markup";
    if (v.type == QN_J_GEN) return v.gen->type;
    if (v.type == QN_J_VIEW) return v.view->what == 0 ? "dict_keys" : v.view->what == 1 ? "dict_values" : "dict_items";
    return names[v.type];
}

static int64_t loop_len(qn_jval v)
{
    return v.loop->length >= 0 ? v.loop->length : (int64_t)v.loop->seq.n;
}

/* Length of what has one, else -1. */
static int64_t len_of(qn_jval v)
{
    switch (v.type) {
    case QN_J_UNDEF: return 0;
    case QN_J_STR: return (int64_t)qn_js_chars(v.s);
    case QN_J_LIST:
    case QN_J_TUPLE: return (int64_t)v.l->n;
    case QN_J_DICT: return (int64_t)v.d->n;
    case QN_J_VIEW: return (int64_t)v.view->d->n;
    case QN_J_RANGE: return v.range->n;
    case QN_J_LOOP: return loop_len(v);
    default: return -1;
    }
}

bool qn_jv_truth(qn_jvm *vm, qn_jval v)
{
    (void)vm;
    switch (v.type) {
    case QN_J_MISSING:
    case QN_J_UNDEF:
    case QN_J_NONE: return false;
    case QN_J_BOOL: return v.b;
    case QN_J_INT: return v.i != 0;
    case QN_J_FLOAT: return v.f != 0;
    case QN_J_STR: return v.s->n != 0;
    default: return len_of(v) != 0;
    }
}

bool qn_jv_len(qn_jvm *vm, qn_jval v, int64_t *n)
{
    *n = len_of(v);
    if (*n < 0) return qn_jvm_fail(vm, "object of type '%s' has no len()", qn_jv_type_name(v));
    return true;
}

bool qn_jv_callable(qn_jval v)
{
    return v.type == QN_J_MACRO || v.type == QN_J_NATIVE || v.type == QN_J_LOOP || v.type == QN_J_JOINER || v.type == QN_J_BLOCK ||
           v.type == QN_J_UNDEF; /* Undefined has __call__, which fails */
}

bool qn_jv_iterable(qn_jval v)
{
    switch (v.type) {
    case QN_J_UNDEF:
    case QN_J_STR:
    case QN_J_LIST:
    case QN_J_TUPLE:
    case QN_J_DICT:
    case QN_J_VIEW:
    case QN_J_RANGE:
    case QN_J_GEN:
    case QN_J_LOOP: return true;
    default: return false;
    }
}

/* ---- equality and order ---- */

static bool lists_equal(qn_jvm *vm, const qn_jlist *a, const qn_jlist *b, bool *eq)
{
    *eq = a->n == b->n;
    if (a == b) return true;
    for (size_t i = 0; *eq && i < a->n; i++)
        if (!qn_jv_eq(vm, a->v[i], b->v[i], eq)) return false;
    return true;
}

static bool dicts_equal(qn_jvm *vm, const qn_jdict *a, const qn_jdict *b, bool *eq)
{
    *eq = a->n == b->n;
    if (a == b) return true;
    for (size_t i = 0; *eq && i < a->n; i++) {
        const qn_jval *other;
        if (!qn_jd_get(vm, b, a->key[i], &other)) return false;
        *eq = other;
        if (other && !qn_jv_eq(vm, a->val[i], *other, eq)) return false;
    }
    return true;
}

/* An exact comparison of int64 with double: -1, 0, 1; 2 for nan. */
static int cmp_int_float(int64_t i, double f)
{
    if (isnan(f)) return 2;
    if (f >= 9223372036854775808.0) return -1;
    if (f < -9223372036854775808.0) return 1;
    const int64_t t = (int64_t)f;
    if (i != t) return i < t ? -1 : 1;
    const double rest = f - (double)t;
    return rest > 0 ? -1 : rest < 0 ? 1 : 0;
}

/* Of two values that are numbers. */
static int cmp_numbers(qn_jval a, qn_jval b)
{
    if (a.type == QN_J_FLOAT && b.type == QN_J_FLOAT) {
        if (isnan(a.f) || isnan(b.f)) return 2;
        return (a.f > b.f) - (a.f < b.f);
    }
    if (a.type == QN_J_FLOAT) {
        const int c = cmp_int_float(qn_jv_as_int(b), a.f);
        return c == 2 ? 2 : -c;
    }
    if (b.type == QN_J_FLOAT) return cmp_int_float(qn_jv_as_int(a), b.f);
    const int64_t x = qn_jv_as_int(a), y = qn_jv_as_int(b);
    return (x > y) - (x < y);
}

/* Integers, of which one at least is beyond 64 bits. */
static int cmp_big(qn_jval a, qn_jval b)
{
    const bool minus_a = a.type == QN_J_BIG ? a.s->p[0] == '-' : qn_jv_as_int(a) < 0;
    const bool minus_b = b.type == QN_J_BIG ? b.s->p[0] == '-' : qn_jv_as_int(b) < 0;
    if (minus_a != minus_b) return minus_a ? -1 : 1;
    const size_t n_a = a.type == QN_J_BIG ? a.s->n : 0, n_b = b.type == QN_J_BIG ? b.s->n : 0;
    int c = n_a != n_b ? (n_a > n_b ? 1 : -1) : memcmp(a.s->p, b.s->p, n_a);
    return minus_a ? -c : c;
}

static bool is_int_like(qn_jval v)
{
    return qn_jv_integral(v) || v.type == QN_J_BIG;
}

static bool ranges_equal(const qn_jrange *a, const qn_jrange *b)
{
    if (a->n != b->n) return false;
    if (a->n == 0) return true;
    return a->start == b->start && (a->n == 1 || a->step == b->step);
}

static bool containers_equal(qn_jvm *vm, qn_jval a, qn_jval b, bool *eq)
{
    if (!qn_jvm_enter_data(vm)) return false;
    bool ok = true;
    if (a.type == QN_J_DICT) ok = dicts_equal(vm, a.d, b.d, eq);
    else ok = lists_equal(vm, a.l, b.l, eq);
    qn_jvm_leave_data(vm);
    return ok;
}

bool qn_jv_eq(qn_jvm *vm, qn_jval a, qn_jval b, bool *eq)
{
    *eq = false;
    if (!qn_jvm_charge(vm, 1)) return false;
    if (qn_jv_numeric(a) && qn_jv_numeric(b)) {
        *eq = cmp_numbers(a, b) == 0;
        return true;
    }
    if (a.type != b.type) return true;
    switch (a.type) {
    case QN_J_UNDEF:
    case QN_J_NONE: *eq = true; return true;
    case QN_J_BIG:
    case QN_J_STR: *eq = qn_js_eq(a.s, b.s); return qn_jvm_charge(vm, a.s->n / 64);
    case QN_J_LIST:
    case QN_J_TUPLE:
    case QN_J_DICT: return containers_equal(vm, a, b, eq);
    case QN_J_RANGE: *eq = ranges_equal(a.range, b.range); return true;
    default: *eq = a.l == b.l; return true;
    }
}

static bool list_less(qn_jvm *vm, qn_jval a, qn_jval b, const char *op, bool *less)
{
    if (!qn_jvm_enter_data(vm)) return false;
    const size_t n = a.l->n < b.l->n ? a.l->n : b.l->n;
    size_t i = 0;
    bool eq = true, ok = true;
    for (; i < n; i++) {
        if (!(ok = qn_jv_eq(vm, a.l->v[i], b.l->v[i], &eq)) || !eq) break;
    }
    if (ok && i < n) ok = qn_jv_less(vm, a.l->v[i], b.l->v[i], op, less);
    else *less = a.l->n < b.l->n;
    qn_jvm_leave_data(vm);
    return ok;
}

bool qn_jv_less(qn_jvm *vm, qn_jval a, qn_jval b, const char *op, bool *less)
{
    *less = false;
    if (!qn_jvm_charge(vm, 1)) return false;
    if (a.type == QN_J_UNDEF) return qn_jv_undef_fail(vm, a);
    if (b.type == QN_J_UNDEF) return qn_jv_undef_fail(vm, b);
    if (qn_jv_numeric(a) && qn_jv_numeric(b)) {
        *less = cmp_numbers(a, b) == -1;
        return true;
    }
    if (is_int_like(a) && is_int_like(b)) {
        *less = cmp_big(a, b) < 0;
        return true;
    }
    if (a.type == QN_J_STR && b.type == QN_J_STR) {
        *less = qn_js_cmp(a.s, b.s) < 0;
        return qn_jvm_charge(vm, a.s->n / 256);
    }
    if (a.type == b.type && (a.type == QN_J_LIST || a.type == QN_J_TUPLE)) return list_less(vm, a, b, op, less);
    return qn_jvm_fail(vm, "'%s' not supported between instances of '%s' and '%s'", op, qn_jv_type_name(a), qn_jv_type_name(b));
}

/* ---- walking ---- */

static bool chars_of(qn_jvm *vm, qn_jval v, qn_jlist **out)
{
    qn_jlist *l = qn_jl_new(vm, qn_js_chars(v.s));
    if (!l || !qn_jvm_charge(vm, l->cap)) return false;
    for (size_t at = 0; at < v.s->n;) {
        size_t n;
        qn_js_decode(v.s->p + at, v.s->p + v.s->n, &n);
        const qn_jstr *c = qn_js_sub(vm, v.s, at, at + n);
        if (!c || !qn_jl_add(vm, l, qn_jv_text(c, v.markup))) return false;
        at += n;
    }
    *out = l;
    return true;
}

static bool view_items(qn_jvm *vm, const qn_jdict *d, int what, qn_jlist **out)
{
    qn_jlist *l = qn_jl_new(vm, d->n);
    if (!l || !qn_jvm_charge(vm, d->n)) return false;
    for (size_t i = 0; i < d->n; i++) {
        qn_jval v = what == 0 ? d->key[i] : d->val[i];
        if (what == 2) {
            qn_jlist *pair = qn_jl_new(vm, 2);
            if (!pair) return false;
            pair->v[pair->n++] = d->key[i];
            pair->v[pair->n++] = d->val[i];
            v = QN_JV(QN_J_TUPLE, l, pair);
        }
        l->v[l->n++] = v;
    }
    *out = l;
    return true;
}

static bool items_of(qn_jvm *vm, qn_jval v, qn_jlist **out)
{
    switch (v.type) {
    case QN_J_UNDEF: *out = qn_jl_new(vm, 0); return *out;
    case QN_J_STR: return chars_of(vm, v, out);
    case QN_J_LIST:
    case QN_J_TUPLE: *out = v.l; return true;
    case QN_J_DICT: return view_items(vm, v.d, 0, out);
    case QN_J_VIEW: return view_items(vm, v.view->d, v.view->what, out);
    case QN_J_GEN: break;
    default: return qn_jvm_fail(vm, "'%s' object is not iterable", qn_jv_type_name(v));
    }
    qn_jlist *l = qn_jl_new(vm, 0);
    if (!l) return false;
    *out = l;
    if (v.gen->at == v.gen->l->n) return true;
    l->v = v.gen->l->v + v.gen->at;
    l->n = l->cap = v.gen->l->n - v.gen->at;
    v.gen->at = v.gen->l->n;
    return true;
}

bool qn_jv_seq(qn_jvm *vm, qn_jval v, qn_jseq *out)
{
    if (v.type == QN_J_RANGE) {
        *out = (qn_jseq){ .range = v.range, .n = (size_t)v.range->n };
        return true;
    }
    qn_jlist *l = NULL;
    if (!items_of(vm, v, &l)) return false;
    *out = (qn_jseq){ .l = l, .n = l->n };
    return true;
}

bool qn_jseq_at(qn_jvm *vm, const qn_jseq *q, size_t i, qn_jval *out)
{
    *out = q->l ? q->l->v[i] : qn_jv_int(q->range->start + (int64_t)i * q->range->step);
    return qn_jvm_charge(vm, 1);
}

bool qn_jv_list(qn_jvm *vm, qn_jval v, qn_jlist **out)
{
    qn_jseq q;
    if (!qn_jv_seq(vm, v, &q)) return false;
    qn_jlist *l = qn_jl_new(vm, q.n);
    if (!l) return false;
    for (size_t i = 0; i < q.n; i++)
        if (!qn_jseq_at(vm, &q, i, &l->v[l->n++])) return false;
    *out = l;
    return true;
}

bool qn_jv_gen(qn_jvm *vm, qn_jlist *l, const char *type, qn_jval *out)
{
    qn_jgen *g = qn_jvm_new(vm, 1, sizeof *g);
    if (!g) return false;
    *g = (qn_jgen){ .l = l, .type = type };
    *out = QN_JV(QN_J_GEN, gen, g);
    return true;
}

/* ---- sorting ---- */

/* Merge runs [lo, mid) and [mid, hi) of `order`; an item of the right goes first only when it is smaller than the left one. */
static bool merge(qn_jvm *vm, const qn_jval *key, const size_t *from, size_t *to, size_t lo, size_t mid, size_t hi, bool reverse)
{
    size_t a = lo, b = mid;
    for (size_t i = lo; i < hi; i++) {
        bool right = a == mid;
        if (a < mid && b < hi) {
            const qn_jval l = key[from[a]], r = key[from[b]];
            if (!(reverse ? qn_jv_less(vm, l, r, "<", &right) : qn_jv_less(vm, r, l, "<", &right))) return false;
        }
        to[i] = from[right ? b++ : a++];
    }
    return true;
}

bool qn_jv_sort(qn_jvm *vm, qn_jval *key, qn_jval *val, size_t n, bool reverse)
{
    size_t *a = qn_jvm_new(vm, n, sizeof *a), *b = qn_jvm_new(vm, n, sizeof *b);
    qn_jval *sorted = qn_jvm_new(vm, n, sizeof *sorted);
    if (!a || !b || !sorted) return false;
    for (size_t i = 0; i < n; i++) a[i] = i;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t lo = 0; lo < n; lo += 2 * width) {
            const size_t mid = lo + width < n ? lo + width : n, hi = mid + width < n ? mid + width : n;
            if (!merge(vm, key, a, b, lo, mid, hi, reverse)) return false;
        }
        size_t *t = a;
        a = b;
        b = t;
    }
    for (size_t i = 0; i < n; i++) sorted[i] = val[a[i]];
    if (n) memcpy(val, sorted, n * sizeof *val);
    return true;
}

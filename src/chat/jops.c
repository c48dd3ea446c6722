/* Operators with Python's meaning. */
#include "src/chat/jvm.h"

#include <math.h>
#include <string.h>

static const char *const op_text[] = { "+", "-", "*", "/", "//", "%", "** or pow()", "==", "!=", "<", "<=", ">", ">=", "in", "not in" };

static bool wrong_types(qn_jvm *vm, int op, qn_jval a, qn_jval b)
{
    if (a.type == QN_J_UNDEF) return qn_jv_undef_fail(vm, a);
    if (b.type == QN_J_UNDEF) return qn_jv_undef_fail(vm, b);
    const char *of_a = qn_jv_type_name(a), *of_b = qn_jv_type_name(b);
    if (op == QN_JOP_ADD && (a.type == QN_J_STR || a.type == QN_J_LIST || a.type == QN_J_TUPLE))
        return qn_jvm_fail(vm, "can only concatenate %s (not \"%s\") to %s", of_a, of_b, of_a);
    return qn_jvm_fail(vm, "unsupported operand type(s) for %s: '%s' and '%s'", op_text[op], of_a, of_b);
}

static bool too_big(qn_jvm *vm)
{
    return qn_jvm_stop(vm, QN_ERR_LIMIT, "template line %d: an integer leaves the range of 64 bits", (int)vm->line);
}

/* ---- numbers ---- */

static bool int_power(qn_jvm *vm, int64_t a, int64_t b, qn_jval *out)
{
    int64_t r = 1;
    if (b < 0) {
        if (a == 0) return qn_jvm_fail(vm, "0.0 cannot be raised to a negative power");
        *out = qn_jv_float(pow((double)a, (double)b));
        return true;
    }
    for (; b; b >>= 1) {
        if ((b & 1) && __builtin_mul_overflow(r, a, &r)) return too_big(vm);
        if (b > 1 && __builtin_mul_overflow(a, a, &a)) return too_big(vm);
    }
    *out = qn_jv_int(r);
    return true;
}

static bool int_op(qn_jvm *vm, int op, int64_t a, int64_t b, qn_jval *out)
{
    int64_t r = 0;
    switch (op) {
    case QN_JOP_ADD:
        if (__builtin_add_overflow(a, b, &r)) return too_big(vm);
        break;
    case QN_JOP_SUB:
        if (__builtin_sub_overflow(a, b, &r)) return too_big(vm);
        break;
    case QN_JOP_MUL:
        if (__builtin_mul_overflow(a, b, &r)) return too_big(vm);
        break;
    case QN_JOP_DIV:
        if (b == 0) return qn_jvm_fail(vm, "division by zero");
        *out = qn_jv_float((double)a / (double)b);
        return true;
    case QN_JOP_POW: return int_power(vm, a, b, out);
    default:
        if (b == 0) return qn_jvm_fail(vm, "integer division or modulo by zero");
        if (b == -1) { /* INT64_MIN / -1 overflows */
            if (op == QN_JOP_MOD) break;
            if (a == INT64_MIN) return too_big(vm);
            r = -a;
            break;
        }
        r = op == QN_JOP_MOD ? a % b : a / b;
        if (a % b && (a % b < 0) != (b < 0)) r += op == QN_JOP_MOD ? b : -1;
    }
    *out = qn_jv_int(r);
    return true;
}

static bool float_power(qn_jvm *vm, double a, double b, qn_jval *out)
{
    if (a == 0 && b < 0) return qn_jvm_fail(vm, "0.0 cannot be raised to a negative power");
    if (a < 0 && isfinite(a) && isfinite(b) && b != floor(b)) return qn_jvm_fail(vm, "complex numbers are not supported");
    const double r = pow(a, b);
    if (isinf(r) && isfinite(a) && isfinite(b)) return qn_jvm_fail(vm, "(34, 'Numerical result out of range')");
    *out = qn_jv_float(r);
    return true;
}

static bool float_op(qn_jvm *vm, int op, double a, double b, qn_jval *out)
{
    switch (op) {
    case QN_JOP_ADD: *out = qn_jv_float(a + b); return true;
    case QN_JOP_SUB: *out = qn_jv_float(a - b); return true;
    case QN_JOP_MUL: *out = qn_jv_float(a * b); return true;
    case QN_JOP_POW: return float_power(vm, a, b, out);
    default: break;
    }
    if (b == 0) return qn_jvm_fail(vm, op == QN_JOP_DIV ? "float division by zero" : "float floor division or modulo by zero");
    if (op == QN_JOP_DIV) {
        *out = qn_jv_float(a / b);
        return true;
    }
    double mod = fmod(a, b), div = (a - mod) / b; /* as Python: the remainder takes the sign of b */
    if (mod != 0) {
        if ((b < 0) != (mod < 0)) mod += b, div -= 1;
    } else {
        mod = copysign(0, b);
    }
    if (div != 0) {
        const double whole = floor(div);
        div = div - whole > 0.5 ? whole + 1 : whole;
    } else {
        div = copysign(0, a / b);
    }
    *out = qn_jv_float(op == QN_JOP_MOD ? mod : div);
    return true;
}

/* ---- sequences ---- */

static bool add_strings(qn_jvm *vm, qn_jval a, qn_jval b, qn_jval *out)
{
    const bool markup = a.markup || b.markup;
    const qn_jstr *x = markup ? qn_jv_escape(vm, a) : a.s, *y = markup ? qn_jv_escape(vm, b) : b.s;
    const qn_jstr *sum = x && y ? qn_js_concat(vm, x, y) : NULL;
    if (sum) *out = qn_jv_text(sum, markup);
    return sum;
}

static bool add_lists(qn_jvm *vm, qn_jval a, qn_jval b, qn_jval *out)
{
    qn_jlist *l = qn_jl_new(vm, a.l->n + b.l->n);
    if (!l || !qn_jvm_charge(vm, (a.l->n + b.l->n) / 4)) return false;
    if (a.l->n) memcpy(l->v, a.l->v, a.l->n * sizeof *l->v);
    if (b.l->n) memcpy(l->v + a.l->n, b.l->v, b.l->n * sizeof *l->v);
    l->n = l->cap;
    *out = QN_JV(a.type, l, l);
    return true;
}

static bool repeat(qn_jvm *vm, qn_jval a, int64_t times, qn_jval *out)
{
    if (times < 0) times = 0;
    if (a.type == QN_J_STR) {
        qn_jbuf b = { .vm = vm };
        return qn_jbuf_fill(&b, a.s, (size_t)times) && qn_jbuf_value(&b, a.markup, out);
    }
    size_t n;
    if (__builtin_mul_overflow(a.l->n, (size_t)times, &n)) n = SIZE_MAX / 64;
    qn_jlist *l = qn_jl_new(vm, n);
    if (!l || !qn_jvm_charge(vm, n / 4)) return false;
    for (; l->n < n; l->n += a.l->n) memcpy(l->v + l->n, a.l->v, a.l->n * sizeof *l->v);
    *out = QN_JV(a.type, l, l);
    return true;
}

static bool is_sequence(qn_jval v)
{
    return v.type == QN_J_STR || v.type == QN_J_LIST || v.type == QN_J_TUPLE;
}

bool qn_jop_binary(qn_jvm *vm, int op, qn_jval a, qn_jval b, qn_jval *out)
{
    if (qn_jv_integral(a) && qn_jv_integral(b)) return int_op(vm, op, qn_jv_as_int(a), qn_jv_as_int(b), out);
    if (qn_jv_numeric(a) && qn_jv_numeric(b)) return float_op(vm, op, qn_jv_as_float(a), qn_jv_as_float(b), out);
    if (op == QN_JOP_ADD && a.type == b.type && is_sequence(a))
        return a.type == QN_J_STR ? add_strings(vm, a, b, out) : add_lists(vm, a, b, out);
    if (op == QN_JOP_MUL && is_sequence(a) && qn_jv_integral(b)) return repeat(vm, a, qn_jv_as_int(b), out);
    if (op == QN_JOP_MUL && is_sequence(b) && qn_jv_integral(a)) return repeat(vm, b, qn_jv_as_int(a), out);
    if (op == QN_JOP_MOD && a.type == QN_J_STR) return qn_jformat_percent(vm, a, b, out);
    if ((a.type == QN_J_BIG && (qn_jv_numeric(b) || b.type == QN_J_BIG)) || (b.type == QN_J_BIG && qn_jv_numeric(a))) return too_big(vm);
    return wrong_types(vm, op, a, b);
}

bool qn_jop_unary(qn_jvm *vm, char op, qn_jval a, qn_jval *out)
{
    if (a.type == QN_J_UNDEF) return qn_jv_undef_fail(vm, a);
    if (a.type == QN_J_FLOAT) {
        *out = qn_jv_float(op == '-' ? -a.f : a.f);
        return true;
    }
    if (a.type == QN_J_BIG) {
        const qn_jstr lit = { .p = "-9223372036854775808", .n = 20 };
        if (op == '+') return *out = a, true;
        *out = a;
        if (a.s->p[0] == '-') return (out->s = qn_js_sub(vm, a.s, 1, a.s->n));
        qn_jbuf b = { .vm = vm };
        if (!qn_jbuf_lit(&b, "-") || !qn_jbuf_str(&b, a.s) || !qn_jbuf_value(&b, false, out)) return false;
        if (qn_js_eq(out->s, &lit)) *out = qn_jv_int(INT64_MIN);
        else out->type = QN_J_BIG;
        return true;
    }
    if (!qn_jv_integral(a)) return qn_jvm_fail(vm, "bad operand type for unary %c: '%s'", op, qn_jv_type_name(a));
    const int64_t i = qn_jv_as_int(a);
    if (op == '-' && i == INT64_MIN) return too_big(vm);
    *out = qn_jv_int(op == '-' ? -i : i);
    return true;
}

/* ---- comparison ---- */

static bool contains(qn_jvm *vm, qn_jval item, qn_jval in, bool *yes)
{
    qn_jseq q;
    const qn_jval *found;
    *yes = false;
    if (in.type == QN_J_STR) {
        if (item.type != QN_J_STR) return qn_jvm_fail(vm, "'in <string>' requires string as left operand, not %s", qn_jv_type_name(item));
        *yes = qn_js_find(in.s, item.s, 0, in.s->n) != SIZE_MAX;
        return qn_jvm_charge(vm, in.s->n / 64);
    }
    if (in.type == QN_J_DICT || (in.type == QN_J_VIEW && in.view->what == 0)) {
        if (!qn_jd_get(vm, in.type == QN_J_DICT ? in.d : in.view->d, item, &found)) return false;
        *yes = found;
        return true;
    }
    if (!qn_jv_iterable(in)) return qn_jvm_fail(vm, "argument of type '%s' is not iterable", qn_jv_type_name(in));
    if (!qn_jv_seq(vm, in, &q)) return false;
    for (size_t i = 0; !*yes && i < q.n; i++) {
        qn_jval v;
        if (!qn_jseq_at(vm, &q, i, &v) || !qn_jv_eq(vm, v, item, yes)) return false;
    }
    return true;
}

bool qn_jop_compare(qn_jvm *vm, int op, qn_jval a, qn_jval b, bool *out)
{
    bool less, eq;
    switch (op) {
    case QN_JOP_EQ:
    case QN_JOP_NE:
        if (!qn_jv_eq(vm, a, b, &eq)) return false;
        *out = eq == (op == QN_JOP_EQ);
        return true;
    case QN_JOP_IN:
    case QN_JOP_NOTIN:
        if (!contains(vm, a, b, &eq)) return false;
        *out = eq == (op == QN_JOP_IN);
        return true;
    case QN_JOP_LT: return qn_jv_less(vm, a, b, op_text[op], out);
    case QN_JOP_GT: return qn_jv_less(vm, b, a, op_text[op], out);
    default: break;
    }
    if (!(op == QN_JOP_LE ? qn_jv_less(vm, a, b, op_text[op], &less) : qn_jv_less(vm, b, a, op_text[op], &less))) return false;
    if (!qn_jv_eq(vm, a, b, &eq)) return false;
    *out = less || eq;
    return true;
}

/* ---- slices ---- */

typedef struct cut {
    int64_t from, to, step, n;
} cut;

static bool bound(qn_jvm *vm, qn_jval v, int64_t otherwise, int64_t low, int64_t high, int64_t len, int64_t *out)
{
    *out = otherwise;
    if (v.type == QN_J_NONE) return true;
    if (v.type == QN_J_UNDEF) return qn_jv_undef_fail(vm, v);
    if (!qn_jv_integral(v)) return qn_jvm_fail(vm, "slice indices must be integers or None or have an __index__ method");
    int64_t i = qn_jv_as_int(v);
    if (i < 0) i = i < -len ? low : i + len;
    *out = i < low ? low : i > high ? high : i;
    return true;
}

/* Python's rule for slice(from, to, step).indices(len). */
static bool measure(qn_jvm *vm, int64_t len, qn_jval from, qn_jval to, qn_jval step, cut *c)
{
    c->step = 1;
    if (step.type != QN_J_NONE && !qn_jarg_int(vm, step, &c->step)) return false;
    if (c->step == 0) return qn_jvm_fail(vm, "slice step cannot be zero");
    if (c->step == INT64_MIN) c->step++;
    const bool back = c->step < 0;
    const int64_t low = back ? -1 : 0, high = back ? len - 1 : len;
    if (!bound(vm, from, back ? high : low, low, high, len, &c->from) || !bound(vm, to, back ? low : high, low, high, len, &c->to)) return false;
    const int64_t span = back ? c->from - c->to : c->to - c->from, step_abs = back ? -c->step : c->step;
    c->n = span > 0 ? (span - 1) / step_abs + 1 : 0;
    return true;
}

static bool slice_string(qn_jvm *vm, qn_jval a, cut c, qn_jval *out)
{
    const bool ascii = qn_js_ascii(a.s);
    if (c.step == 1) {
        const size_t from = qn_js_offset(a.s, (size_t)c.from);
        const size_t to = ascii || !c.n ? from + (size_t)c.n : qn_js_offset(a.s, (size_t)(c.from + c.n));
        const qn_jstr *s = qn_js_sub(vm, a.s, from, to);
        if (s) *out = qn_jv_text(s, a.markup);
        return s && qn_jvm_charge(vm, ascii ? 0 : a.s->n / 64);
    }
    qn_jlist *l;
    qn_jbuf b = { .vm = vm };
    if (!qn_jv_list(vm, a, &l)) return false;
    for (int64_t i = 0; i < c.n; i++)
        if (!qn_jbuf_str(&b, l->v[c.from + i * c.step].s)) return false;
    return qn_jbuf_value(&b, a.markup, out);
}

static bool slice_list(qn_jvm *vm, qn_jval a, cut c, qn_jval *out)
{
    qn_jlist *l = qn_jl_new(vm, c.step == 1 ? 0 : (size_t)c.n);
    if (!l || !qn_jvm_charge(vm, l->cap)) return false;
    if (c.step == 1) { /* the same items: nothing changes them */
        l->v = a.l->v + c.from;
        l->n = l->cap = (size_t)c.n;
    } else {
        for (int64_t i = 0; i < c.n; i++) l->v[l->n++] = a.l->v[c.from + i * c.step];
    }
    *out = QN_JV(a.type, l, l);
    return true;
}

bool qn_jop_slice(qn_jvm *vm, qn_jval a, qn_jval from, qn_jval to, qn_jval step, qn_jval *out)
{
    int64_t len;
    cut c;
    if (a.type == QN_J_UNDEF) return qn_jv_undef_fail(vm, a);
    if (!is_sequence(a) && a.type != QN_J_RANGE) return qn_jvm_fail(vm, "'%s' object is not subscriptable", qn_jv_type_name(a));
    if (!qn_jv_len(vm, a, &len) || !measure(vm, len, from, to, step, &c)) return false;
    if (a.type == QN_J_STR) return slice_string(vm, a, c, out);
    if (a.type != QN_J_RANGE) return slice_list(vm, a, c, out);
    qn_jrange *r = qn_jvm_new(vm, 1, sizeof *r);
    if (!r) return false;
    r->step = a.range->step * c.step;
    r->start = a.range->start + c.from * a.range->step;
    r->n = c.n;
    r->stop = a.range->start + c.to * a.range->step;
    *out = QN_JV(QN_J_RANGE, range, r);
    return true;
}

/* Attributes and items, with the sandbox: methods that change their object and names with an underscore are out of reach. */
#include "src/chat/jast.h"

#include <string.h>

/* ---- attributes that are not methods ---- */

static bool loop_attr(qn_jvm *vm, qn_jloop *l, const qn_jstr *name, bool *found, qn_jval *out)
{
    int64_t n;
    *found = true;
    if (qn_js_is(name, "index")) return *out = qn_jv_int(l->index0 + 1), true;
    if (qn_js_is(name, "index0")) return *out = qn_jv_int(l->index0), true;
    if (qn_js_is(name, "first")) return *out = qn_jv_bool(l->index0 == 0), true;
    if (qn_js_is(name, "depth")) return *out = qn_jv_int(l->depth0 + 1), true;
    if (qn_js_is(name, "depth0")) return *out = qn_jv_int(l->depth0), true;
    if (qn_js_is(name, "previtem")) {
        *out = l->before;
        return out->type != QN_J_MISSING || qn_jv_undef_hint(vm, "there is no previous item", out);
    }
    const bool last = qn_js_is(name, "last");
    if (last || qn_js_is(name, "nextitem")) {
        if (!qn_jloop_peek(vm, l, out)) return false;
        if (last) *out = qn_jv_bool(out->type == QN_J_MISSING);
        return out->type != QN_J_MISSING || qn_jv_undef_hint(vm, "there is no next item", out);
    }
    const bool rev = qn_js_is(name, "revindex"), rev0 = qn_js_is(name, "revindex0");
    if (rev || rev0 || qn_js_is(name, "length")) {
        if (!qn_jloop_length(vm, l, &n)) return false;
        *out = qn_jv_int(rev ? n - l->index0 : rev0 ? n - l->index0 - 1 : n);
        return true;
    }
    *found = false;
    return true;
}

static bool macro_attr(qn_jvm *vm, const qn_jmacro *m, const qn_jstr *name, bool *found, qn_jval *out)
{
    const qn_jnode *n = m->node;
    *found = true;
    if (qn_js_is(name, "name")) return *out = n->name ? qn_jv_str(n->name) : qn_jv_none(), true;
    if (qn_js_is(name, "catch_kwargs")) return *out = qn_jv_bool(n->slot_special[1] >= 0), true;
    if (qn_js_is(name, "catch_varargs")) return *out = qn_jv_bool(n->slot_special[2] >= 0), true;
    if (qn_js_is(name, "caller")) return *out = qn_jv_bool(n->slot_special[0] >= 0), true;
    *found = qn_js_is(name, "arguments");
    if (!*found) return true;
    qn_jlist *l = qn_jl_new(vm, n->more.n);
    if (!l) return false;
    for (size_t i = 0; i < n->more.n; i++) l->v[l->n++] = qn_jv_str(n->more.v[i]->name);
    *out = QN_JV(QN_J_TUPLE, l, l);
    return true;
}

static bool number_attr(qn_jval a, const qn_jstr *name, bool *found, qn_jval *out)
{
    *found = true;
    if (qn_js_is(name, "real")) *out = a.type == QN_J_BOOL ? qn_jv_int(a.b) : a;
    else if (qn_js_is(name, "imag")) *out = a.type == QN_J_FLOAT ? qn_jv_float(0) : qn_jv_int(0);
    else if (a.type != QN_J_FLOAT && qn_js_is(name, "numerator")) *out = qn_jv_int(qn_jv_as_int(a));
    else if (a.type != QN_J_FLOAT && qn_js_is(name, "denominator")) *out = qn_jv_int(1);
    else *found = false;
    return true;
}

static bool range_attr(const qn_jrange *r, const qn_jstr *name, bool *found, qn_jval *out)
{
    *found = true;
    if (qn_js_is(name, "start")) *out = qn_jv_int(r->start);
    else if (qn_js_is(name, "stop")) *out = qn_jv_int(r->stop);
    else if (qn_js_is(name, "step")) *out = qn_jv_int(r->step);
    else *found = false;
    return true;
}

static bool data_attr(qn_jvm *vm, qn_jval a, const qn_jstr *name, bool *found, qn_jval *out)
{
    const qn_jval *have = NULL;
    *found = false;
    switch (a.type) {
    case QN_J_LOOP: return loop_attr(vm, a.loop, name, found, out);
    case QN_J_MACRO: return macro_attr(vm, a.macro, name, found, out);
    case QN_J_BOOL:
    case QN_J_INT:
    case QN_J_FLOAT: return number_attr(a, name, found, out);
    case QN_J_RANGE: return range_attr(a.range, name, found, out);
    case QN_J_SPACE:
        if (!qn_jd_get(vm, a.d, qn_jv_str(name), &have)) return false;
        break;
    case QN_J_CYCLER:
        if (qn_js_is(name, "current")) have = &a.cycler->l->v[a.cycler->at];
        break;
    case QN_J_TUPLE:
        if (a.group && qn_js_is(name, "grouper")) have = &a.l->v[0];
        if (a.group && qn_js_is(name, "list")) have = &a.l->v[1];
        break;
    default: break;
    }
    *found = have;
    if (have) *out = *have;
    return true;
}

/* Names that every object of Python has; they exist, and none of them may be touched. */
static bool internal_name(const qn_jstr *name)
{
    static const char *const names[] = {
        "__class__", "__doc__", "__init__", "__new__", "__repr__", "__str__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__",
        "__hash__", "__getattribute__", "__setattr__", "__delattr__", "__reduce__", "__reduce_ex__", "__getstate__", "__sizeof__", "__dir__",
        "__format__", "__subclasshook__", "__init_subclass__", "__len__", "__iter__", "__contains__", "__getitem__", "__add__", "__mul__",
        "__mod__", "__call__", "__globals__", "__code__", "__dict__", "__module__", "__self__", "__func__",
    };
    if (name->n < 5 || name->p[0] != '_' || name->p[1] != '_') return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (qn_js_is(name, names[i])) return true;
    return false;
}

bool qn_jattr_find(qn_jvm *vm, qn_jval a, const qn_jstr *name, bool *found, qn_jval *out)
{
    if (!data_attr(vm, a, name, found, out) || *found) return vm->status == QN_OK;
    *found = true;
    if (internal_name(name) || qn_jmethod_unsafe(a, name)) return qn_jv_undef_attr(vm, QN_JU_UNSAFE, a, qn_jv_str(name), out);
    const qn_jfn *fn = qn_jmethod_find(a, name);
    *found = fn;
    if (!fn) return true;
    qn_jbound *b = qn_jvm_new(vm, 1, sizeof *b);
    if (!b) return false;
    *b = (qn_jbound){ fn, a };
    *out = QN_JV(QN_J_NATIVE, bound, b);
    return true;
}

/* ---- items ---- */

static const qn_jnode *block_named(const qn_jvm *vm, const qn_jstr *name)
{
    for (size_t i = 0; i < vm->root->more.n; i++)
        if (qn_js_eq(vm->root->more.v[i]->name, name)) return vm->root->more.v[i];
    return NULL;
}

static bool char_at(qn_jvm *vm, qn_jval a, size_t i, qn_jval *out)
{
    const size_t from = qn_js_offset(a.s, i);
    size_t n;
    qn_js_decode(a.s->p + from, a.s->p + a.s->n, &n);
    const qn_jstr *s = qn_js_sub(vm, a.s, from, from + n);
    if (s) *out = qn_jv_text(s, a.markup);
    return s && qn_jvm_charge(vm, qn_js_ascii(a.s) ? 0 : i / 64);
}

/* obj[key] where Python's lookup finds something. */
static bool lookup(qn_jvm *vm, qn_jval a, qn_jval key, bool *found, qn_jval *out)
{
    const qn_jval *have;
    int64_t len;
    *found = false;
    if (a.type == QN_J_DICT) {
        if (key.type == QN_J_LIST || key.type == QN_J_DICT) return true; /* unhashable: as if it were not there */
        if (!qn_jd_get(vm, a.d, key, &have)) return false;
        *found = have;
        if (have) *out = *have;
        return true;
    }
    if (a.type == QN_J_BLOCKS && key.type == QN_J_STR) {
        const qn_jnode *b = block_named(vm, key.s);
        *found = b;
        if (b) *out = QN_JV(QN_J_BLOCK, block, b);
        return true;
    }
    if (a.type != QN_J_LIST && a.type != QN_J_TUPLE && a.type != QN_J_STR && a.type != QN_J_RANGE) return true;
    if (!qn_jv_integral(key)) return true;
    if (!qn_jv_len(vm, a, &len)) return false;
    int64_t i = qn_jv_as_int(key);
    if (i < 0) i += len;
    if (i < 0 || i >= len) return true;
    *found = true;
    if (a.type == QN_J_STR) return char_at(vm, a, (size_t)i, out);
    *out = a.type == QN_J_RANGE ? qn_jv_int(a.range->start + i * a.range->step) : a.l->v[i];
    return true;
}

bool qn_jattr_get(qn_jvm *vm, qn_jval a, const qn_jstr *name, qn_jval *out)
{
    bool found;
    if (a.type == QN_J_UNDEF) return qn_jv_undef_fail(vm, a);
    if (!qn_jattr_find(vm, a, name, &found, out)) return false;
    if (!found && !lookup(vm, a, qn_jv_str(name), &found, out)) return false;
    return found || qn_jv_undef_attr(vm, QN_JU_ATTR, a, qn_jv_str(name), out);
}

bool qn_jattr_item(qn_jvm *vm, qn_jval a, qn_jval key, qn_jval *out)
{
    bool found;
    if (a.type == QN_J_UNDEF) return qn_jv_undef_fail(vm, a);
    if (!lookup(vm, a, key, &found, out)) return false;
    if (!found && key.type == QN_J_STR && !qn_jattr_find(vm, a, key.s, &found, out)) return false;
    return found || qn_jv_undef_attr(vm, QN_JU_ATTR, a, key, out);
}

/* The tests of Jinja (`x is name`), and the global functions. */
#include "src/chat/jmethod.h"

#include <string.h>

static bool give(qn_jval *out, bool yes)
{
    *out = qn_jv_bool(yes);
    return true;
}

/* ---- types ---- */

#define TEST(name, yes)                                                      \
    static bool test_##name(qn_jvm *vm, qn_jcall *c, qn_jval *out)           \
    {                                                                        \
        const qn_jval v = c->a[0];                                           \
        (void)vm;                                                            \
        return give(out, yes);                                               \
    }
TEST(defined, v.type != QN_J_UNDEF)
TEST(undefined, v.type == QN_J_UNDEF)
TEST(none, v.type == QN_J_NONE)
TEST(boolean, v.type == QN_J_BOOL)
TEST(true, v.type == QN_J_BOOL && v.b)
TEST(false, v.type == QN_J_BOOL && !v.b)
TEST(integer, v.type == QN_J_INT || v.type == QN_J_BIG)
TEST(float, v.type == QN_J_FLOAT)
TEST(number, qn_jv_numeric(v) || v.type == QN_J_BIG)
TEST(string, v.type == QN_J_STR)
TEST(mapping, v.type == QN_J_DICT)
TEST(sequence, v.type == QN_J_STR || v.type == QN_J_LIST || v.type == QN_J_TUPLE || v.type == QN_J_DICT || v.type == QN_J_RANGE ||
                   v.type == QN_J_UNDEF)
TEST(iterable, qn_jv_iterable(v))
TEST(callable, qn_jv_callable(v))
TEST(escaped, v.type == QN_J_STR && v.markup)

static bool test_lower(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    const qn_jstr *s = qn_jv_to_str(vm, c->a[0]);
    return s && give(out, qn_js_is_case(s, false));
}

static bool test_upper(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    const qn_jstr *s = qn_jv_to_str(vm, c->a[0]);
    return s && give(out, qn_js_is_case(s, true));
}

/* ---- numbers ---- */

static bool divides(qn_jvm *vm, qn_jval v, qn_jval by, int64_t want, qn_jval *out)
{
    qn_jval rest;
    bool eq;
    return qn_jop_binary(vm, QN_JOP_MOD, v, by, &rest) && qn_jv_eq(vm, rest, qn_jv_int(want), &eq) && give(out, eq);
}

static bool test_even(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return divides(vm, c->a[0], qn_jv_int(2), 0, out);
}

static bool test_odd(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return divides(vm, c->a[0], qn_jv_int(2), 1, out);
}

static bool test_divisibleby(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return divides(vm, c->a[0], c->a[1], 0, out);
}

/* ---- comparison ---- */

static bool compare(qn_jvm *vm, const qn_jcall *c, int op, qn_jval *out)
{
    bool yes;
    return qn_jop_compare(vm, op, c->a[0], c->a[1], &yes) && give(out, yes);
}

#define COMPARISON(name, op)                                                 \
    static bool test_##name(qn_jvm *vm, qn_jcall *c, qn_jval *out)           \
    {                                                                        \
        return compare(vm, c, op, out);                                      \
    }
COMPARISON(eq, QN_JOP_EQ)
COMPARISON(ne, QN_JOP_NE)
COMPARISON(lt, QN_JOP_LT)
COMPARISON(le, QN_JOP_LE)
COMPARISON(gt, QN_JOP_GT)
COMPARISON(ge, QN_JOP_GE)
COMPARISON(in, QN_JOP_IN)

/* Python's `is`: small values are single objects, containers are themselves alone. */
static bool test_sameas(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    const qn_jval a = c->a[0], b = c->a[1];
    bool same = a.type == b.type;
    if (same && (a.type <= QN_J_FLOAT || a.type == QN_J_STR)) {
        if (a.type == QN_J_UNDEF) same = a.undef == b.undef;
        else if (!qn_jv_eq(vm, a, b, &same)) return false;
    } else if (same) {
        same = a.l == b.l;
    }
    return give(out, same);
}

static bool test_filter(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    (void)vm;
    return give(out, c->a[0].type == QN_J_STR && qn_jfilter_find(c->a[0].s));
}

static bool test_test(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    (void)vm;
    return give(out, c->a[0].type == QN_J_STR && qn_jtest_find(c->a[0].s));
}

static const qn_jfn tests[] = {
    { "odd", "value", test_odd },
    { "even", "value", test_even },
    { "divisibleby", "value,num", test_divisibleby },
    { "defined", "value", test_defined },
    { "undefined", "value", test_undefined },
    { "filter", "value", test_filter },
    { "test", "value", test_test },
    { "none", "value", test_none },
    { "boolean", "value", test_boolean },
    { "false", "value", test_false },
    { "true", "value", test_true },
    { "integer", "value", test_integer },
    { "float", "value", test_float },
    { "lower", "value", test_lower },
    { "upper", "value", test_upper },
    { "string", "value", test_string },
    { "mapping", "value", test_mapping },
    { "number", "value", test_number },
    { "sequence", "value", test_sequence },
    { "iterable", "value", test_iterable },
    { "callable", "value", test_callable },
    { "sameas", "value,other", test_sameas },
    { "escaped", "value", test_escaped },
    { "in", "value,seq", test_in },
    { "==", "a,b", test_eq },
    { "eq", "a,b", test_eq },
    { "equalto", "a,b", test_eq },
    { "!=", "a,b", test_ne },
    { "ne", "a,b", test_ne },
    { ">", "a,b", test_gt },
    { "gt", "a,b", test_gt },
    { "greaterthan", "a,b", test_gt },
    { "ge", "a,b", test_ge },
    { ">=", "a,b", test_ge },
    { "<", "a,b", test_lt },
    { "lt", "a,b", test_lt },
    { "lessthan", "a,b", test_lt },
    { "<=", "a,b", test_le },
    { "le", "a,b", test_le },
    { NULL, NULL, NULL },
};

const qn_jfn *qn_jtest_find(const qn_jstr *name)
{
    return qn_jfn_in(tests, name);
}

/* Expressions. Each handler is a function of its own, so that deep recursion costs little of the C stack. */
#include "src/chat/jast.h"

#include <string.h>

typedef bool (*handler)(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval *out);

static bool eval_const(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval *out)
{
    (void)vm, (void)env;
    *out = n->val;
    return true;
}

static bool eval_name(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval *out)
{
    for (int32_t i = n->hops; i > 0; i--) env = env->parent;
    *out = env->slot[n->slot];
    return out->type != QN_J_MISSING || qn_jv_undef_name(vm, n->name, out);
}

static bool eval_items(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval *out)
{
    qn_jlist *l = qn_jl_new(vm, n->kid.n);
    if (!l) return false;
    for (size_t i = 0; i < n->kid.n; i++) {
        if (!qn_jeval(vm, n->kid.v[i], env, &l->v[i])) return false;
        l->n++;
    }
    *out = QN_JV(n->kind == QN_JN_LIST ? QN_J_LIST : QN_J_TUPLE, l, l);
    return true;
}

static bool eval_dict(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval *out)
{
    qn_jdict *d = qn_jd_new(vm);
    if (!d) return false;
    for (size_t i = 0; i + 1 < n->kid.n; i += 2) {
        qn_jval key, val;
        if (!qn_jeval(vm, n->kid.v[i], env, &key) || !qn_jeval(vm, n->kid.v[i + 1], env, &val) || !qn_jd_set(vm, d, key, val)) return false;
    }
    *out = QN_JV(QN_J_DICT, d, d);
    return true;
}

static bool eval_binary(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval *out)
{
    qn_jval a, b;
    if (!qn_jeval(vm, n->a, env, &a) || !qn_jeval(vm, n->b, env, &b)) return false;
    vm->line = n->line;
    return qn_jop_binary(vm, n->op, a, b, out);
}

static bool eval_unary(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval *out)
{
    qn_jval a;
    return qn_jeval(vm, n->a, env, &a) && qn_jop_unary(vm, (char)n->op, a, out);
}

static bool eval_not(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval *out)
{
    if (!qn_jeval(vm, n->a, env, out)) return false;
    *out = qn_jv_bool(!qn_jv_truth(vm, *out));
    return true;
}

static bool eval_and_or(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval *out)
{
    if (!qn_jeval(vm, n->a, env, out)) return false;
    if (qn_jv_truth(vm, *out) == (n->kind == QN_JN_OR)) return true;
    return qn_jeval(vm, n->b, env, out);
}

static bool eval_concat(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval *out)
{
    const qn_jstr *sum = NULL;
    for (size_t i = 0; i < n->kid.n; i++) {
        qn_jval v;
        if (!qn_jeval(vm, n->kid.v[i], env, &v)) return false;
        const qn_jstr *s = vm->autoescape ? qn_jv_escape(vm, v) : qn_jv_to_str(vm, v);
        if (!s) return false;
        sum = sum ? qn_js_concat(vm, sum, s) : s;
        if (!sum) return false;
    }
    *out = qn_jv_text(sum, vm->autoescape);
    return true;
}

static bool eval_compare(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval *out)
{
    qn_jval a, b;
    bool yes = true;
    if (!qn_jeval(vm, n->a, env, &a)) return false;
    for (size_t i = 0; yes && i < n->kid.n; i++) {
        const qn_jnode *o = n->kid.v[i];
        if (!qn_jeval(vm, o->a, env, &b) || !qn_jop_compare(vm, o->op, a, b, &yes)) return false;
        a = b;
    }
    *out = qn_jv_bool(yes);
    return true;
}

static bool eval_cond(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval *out)
{
    if (!qn_jeval(vm, n->a, env, out)) return false;
    if (qn_jv_truth(vm, *out)) return qn_jeval(vm, n->b, env, out);
    if (n->c) return qn_jeval(vm, n->c, env, out);
    return qn_jv_undef_hint(vm, "the inline if-expression evaluated to false and no else section was defined.", out);
}

static bool eval_attr(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval *out)
{
    qn_jval a;
    if (!qn_jeval(vm, n->a, env, &a)) return false;
    vm->line = n->line;
    return qn_jattr_get(vm, a, n->name, out);
}

static bool eval_slice(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval *out)
{
    qn_jval a, part[3] = { { .type = QN_J_NONE }, { .type = QN_J_NONE }, { .type = QN_J_NONE } };
    const qn_jnode *s = n->b;
    if (!qn_jeval(vm, n->a, env, &a)) return false;
    if ((s->a && !qn_jeval(vm, s->a, env, &part[0])) || (s->b && !qn_jeval(vm, s->b, env, &part[1]))) return false;
    if (s->c && !qn_jeval(vm, s->c, env, &part[2])) return false;
    vm->line = n->line;
    return qn_jop_slice(vm, a, part[0], part[1], part[2], out);
}

static bool eval_item(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval *out)
{
    if (n->b->kind == QN_JN_SLICE) return eval_slice(vm, n, env, out);
    qn_jval a, key;
    if (!qn_jeval(vm, n->a, env, &a) || !qn_jeval(vm, n->b, env, &key)) return false;
    vm->line = n->line;
    return qn_jattr_item(vm, a, key, out);
}

/* ---- arguments ---- */

static bool add_named(qn_jvm *vm, qn_jargs *args, size_t *cap, const qn_jstr *name, qn_jval v)
{
    for (size_t i = 0; i < args->n_kw; i++)
        if (qn_js_eq(args->name[i], name))
            return qn_jvm_fail(vm, "got multiple values for keyword argument '%.*s'", QN_STR_ARG(((qn_str){ name->p, name->n })));
    if (args->n_kw == *cap) {
        const size_t want = *cap ? *cap * 2 : 4;
        const qn_jstr **names = qn_jarena_grow(vm->mem, (void *)(uintptr_t)args->name, *cap * sizeof *names, want * sizeof *names);
        qn_jval *kw = names ? qn_jarena_grow(vm->mem, args->kw, *cap * sizeof *kw, want * sizeof *kw) : NULL;
        if (!kw) return qn_jvm_no_memory(vm);
        args->name = names;
        args->kw = kw;
        *cap = want;
    }
    args->name[args->n_kw] = name;
    args->kw[args->n_kw++] = v;
    return qn_jvm_charge(vm, 1 + args->n_kw / 4);
}

static bool add_star(qn_jvm *vm, qn_jlist *pos, qn_jval v)
{
    qn_jseq q;
    if (!qn_jv_seq(vm, v, &q)) return false;
    for (size_t i = 0; i < q.n; i++) {
        qn_jval item;
        if (!qn_jseq_at(vm, &q, i, &item) || !qn_jl_add(vm, pos, item)) return false;
    }
    return true;
}

static bool add_star_star(qn_jvm *vm, qn_jargs *args, size_t *cap, qn_jval v)
{
    if (v.type != QN_J_DICT) return qn_jvm_fail(vm, "argument after ** must be a mapping, not %s", qn_jv_type_name(v));
    for (size_t i = 0; i < v.d->n; i++) {
        if (v.d->key[i].type != QN_J_STR) return qn_jvm_fail(vm, "keywords must be strings");
        if (!add_named(vm, args, cap, v.d->key[i].s, v.d->val[i])) return false;
    }
    return true;
}

bool qn_jeval_args(qn_jvm *vm, const qn_jnode *call, qn_jenv *env, qn_jargs *args)
{
    *args = (qn_jargs){ 0 };
    if (!call->kid.n) return true;
    size_t cap = 0;
    qn_jlist pos = { .cap = call->kid.n };
    pos.v = qn_jvm_new(vm, pos.cap, sizeof *pos.v);
    if (!pos.v) return false;
    for (size_t i = 0; i < call->kid.n; i++) {
        const qn_jnode *n = call->kid.v[i];
        const bool plain = n->kind != QN_JN_KEYWORD && n->kind != QN_JN_STAR && n->kind != QN_JN_STARSTAR;
        qn_jval v;
        if (!qn_jeval(vm, plain ? n : n->a, env, &v)) return false;
        bool ok;
        if (plain) ok = qn_jl_add(vm, &pos, v);
        else if (n->kind == QN_JN_KEYWORD) ok = add_named(vm, args, &cap, n->name, v);
        else if (n->kind == QN_JN_STAR) ok = add_star(vm, &pos, v);
        else ok = add_star_star(vm, args, &cap, v);
        if (!ok) return false;
    }
    args->pos = pos.v;
    args->n_pos = pos.n;
    return true;
}

/* ---- calls, filters, tests ---- */

static bool eval_call(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval *out)
{
    qn_jval fn;
    qn_jargs args;
    if (!qn_jeval(vm, n->a, env, &fn) || !qn_jeval_args(vm, n, env, &args)) return false;
    vm->line = n->line;
    return qn_jcall_value(vm, fn, &args, out);
}

static bool unknown(qn_jvm *vm, const qn_jnode *n, const char *what)
{
    return qn_jvm_fail(vm, "No %s named '%.*s' found.", what, QN_STR_ARG(((qn_str){ n->name->p, n->name->n })));
}

static bool eval_filter(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval *out)
{
    qn_jval v;
    qn_jargs args;
    if (!qn_jeval(vm, n->a, env, &v) || !qn_jeval_args(vm, n, env, &args)) return false;
    vm->line = n->line;
    if (!n->fn) return unknown(vm, n, "filter");
    return qn_jcall_native(vm, n->fn, v, &args, out);
}

bool qn_jeval_filter_on(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval value, qn_jval *out)
{
    qn_jargs args;
    if (!qn_jvm_enter(vm)) return false;
    if (n->a && !qn_jeval_filter_on(vm, n->a, env, value, &value)) return false;
    if (!qn_jeval_args(vm, n, env, &args)) return false;
    vm->line = n->line;
    qn_jvm_leave(vm);
    return n->fn ? qn_jcall_native(vm, n->fn, value, &args, out) : unknown(vm, n, "filter");
}

static bool eval_test(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval *out)
{
    qn_jval v;
    qn_jargs args;
    if (!qn_jeval(vm, n->a, env, &v) || !qn_jeval_args(vm, n, env, &args)) return false;
    vm->line = n->line;
    if (!n->fn) return unknown(vm, n, "test");
    return qn_jcall_native(vm, n->fn, v, &args, out);
}

static bool eval_wrong(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval *out)
{
    (void)env, (void)out;
    vm->line = n->line;
    return qn_jvm_fail(vm, "a slice stands where it cannot be evaluated");
}

static const handler handlers[] = {
    [QN_JN_CONST] = eval_const,   [QN_JN_NAME] = eval_name,       [QN_JN_NSREF] = eval_wrong, [QN_JN_LIST] = eval_items,
    [QN_JN_TUPLE] = eval_items,   [QN_JN_DICT] = eval_dict,       [QN_JN_BINARY] = eval_binary, [QN_JN_UNARY] = eval_unary,
    [QN_JN_NOT] = eval_not,       [QN_JN_AND] = eval_and_or,      [QN_JN_OR] = eval_and_or,   [QN_JN_CONCAT] = eval_concat,
    [QN_JN_COMPARE] = eval_compare, [QN_JN_OPERAND] = eval_wrong, [QN_JN_COND] = eval_cond,   [QN_JN_ATTR] = eval_attr,
    [QN_JN_ITEM] = eval_item,     [QN_JN_SLICE] = eval_wrong,     [QN_JN_CALL] = eval_call,   [QN_JN_FILTER] = eval_filter,
    [QN_JN_TEST] = eval_test,
};

bool qn_jeval(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval *out)
{
    if (!qn_jvm_charge(vm, 1)) return false;
    if (n->kind <= QN_JN_NAME) return handlers[n->kind](vm, n, env, out);
    if (!qn_jvm_enter(vm)) return false;
    const bool ok = handlers[n->kind](vm, n, env, out);
    qn_jvm_leave(vm);
    return ok;
}

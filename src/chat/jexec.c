/* Statements, loops and macros. */
#include "src/chat/jast.h"

#include <string.h>

/* ---- environments ---- */

qn_jenv *qn_jenv_new(qn_jvm *vm, const qn_jscope *scope, qn_jenv *parent)
{
    qn_jenv *e = qn_jvm_new(vm, 1, sizeof *e + scope->n * sizeof(qn_jval));
    if (!e) return NULL;
    *e = (qn_jenv){ .parent = parent, .slot = (qn_jval *)(e + 1), .scope = scope };
    return e;
}

static bool resolve(qn_jvm *vm, const qn_jstr *name, qn_jval *out)
{
    const qn_jval *found;
    if (!qn_jd_get(vm, vm->vars, qn_jv_str(name), &found)) return false;
    if (!found && !qn_jd_get(vm, vm->context, qn_jv_str(name), &found)) return false;
    *out = (qn_jval){ 0 };
    if (found) {
        *out = *found;
        return true;
    }
    const qn_jfn *fn = qn_jglobal_find(name);
    if (!fn) return true;
    qn_jbound *b = qn_jvm_new(vm, 1, sizeof *b);
    if (!b) return false;
    b->fn = fn;
    *out = QN_JV(QN_J_NATIVE, bound, b);
    return true;
}

bool qn_jenv_load(qn_jvm *vm, qn_jenv *env)
{
    for (size_t i = 0; i < env->scope->n; i++) {
        const qn_jsym *y = &env->scope->sym[i];
        if (y->load == QN_JLOAD_UNDEFINED) env->slot[i] = (qn_jval){ 0 };
        if (y->load == QN_JLOAD_RESOLVE && !resolve(vm, y->name, &env->slot[i])) return false;
        if (y->load != QN_JLOAD_ALIAS) continue;
        const qn_jenv *outer = env;
        for (int32_t k = y->hops; k > 0; k--) outer = outer->parent;
        env->slot[i] = outer->slot[y->slot];
    }
    return qn_jvm_charge(vm, env->scope->n);
}

static qn_jenv *enter_scope(qn_jvm *vm, const qn_jscope *scope, qn_jenv *parent)
{
    qn_jenv *e = qn_jenv_new(vm, scope, parent);
    return e && qn_jenv_load(vm, e) ? e : NULL;
}

/* ---- assignment ---- */

static bool assign_tuple(qn_jvm *vm, const qn_jnode *target, qn_jenv *env, qn_jval v)
{
    qn_jseq q;
    if (!qn_jv_iterable(v)) return qn_jvm_fail(vm, "cannot unpack non-iterable %s object", qn_jv_type_name(v));
    if (!qn_jv_seq(vm, v, &q)) return false;
    if (q.n > target->kid.n) return qn_jvm_fail(vm, "too many values to unpack (expected %zu)", target->kid.n);
    if (q.n < target->kid.n) return qn_jvm_fail(vm, "not enough values to unpack (expected %zu, got %zu)", target->kid.n, q.n);
    for (size_t i = 0; i < q.n; i++) {
        qn_jval item;
        if (!qn_jseq_at(vm, &q, i, &item) || !qn_jexec_assign(vm, target->kid.v[i], env, item)) return false;
    }
    return true;
}

bool qn_jexec_assign(qn_jvm *vm, const qn_jnode *target, qn_jenv *env, qn_jval v)
{
    vm->line = target->line;
    if (target->kind == QN_JN_TUPLE) return assign_tuple(vm, target, env, v);
    for (int32_t i = target->hops; i > 0; i--) env = env->parent;
    qn_jval *slot = &env->slot[target->slot];
    if (target->kind == QN_JN_NSREF) {
        if (slot->type != QN_J_SPACE) return qn_jvm_fail(vm, "cannot assign attribute on non-namespace object");
        return qn_jd_set(vm, slot->d, qn_jv_str(target->attr), v);
    }
    *slot = v;
    return !env->scope->toplevel || qn_jd_set(vm, vm->vars, qn_jv_str(target->name), v);
}

/* ---- output ---- */

static bool print(qn_jvm *vm, qn_jval v)
{
    if (!vm->autoescape) return qn_jbuf_display(vm->out, v);
    const qn_jstr *s = qn_jv_escape(vm, v);
    return s && qn_jbuf_str(vm->out, s);
}

qn_jrun qn_jexec_captured(qn_jvm *vm, const qn_jlistn *body, qn_jenv *env, qn_jval *out)
{
    qn_jbuf b = { .vm = vm }, *outer = vm->out;
    vm->out = &b;
    qn_jrun run = qn_jexec(vm, body, env);
    vm->out = outer;
    if (run == QN_JRUN_ON && !qn_jbuf_value(&b, vm->autoescape, out)) run = QN_JRUN_FAIL;
    return run;
}

/* ---- loops ---- */

/* The next item that the filter lets through; QN_J_MISSING at the end. */
static bool draw(qn_jvm *vm, qn_jloop *l, qn_jval *out)
{
    const qn_jnode *n = l->node;
    *out = (qn_jval){ 0 };
    while (l->at < l->seq.n) {
        qn_jval item, yes;
        if (!qn_jseq_at(vm, &l->seq, l->at++, &item)) return false;
        if (n->c) {
            if (!qn_jexec_assign(vm, n->a, l->env_test, item) || !qn_jeval(vm, n->c, l->env_test, &yes)) return false;
            if (!qn_jv_truth(vm, yes)) continue;
        }
        *out = item;
        return true;
    }
    return true;
}

bool qn_jloop_peek(qn_jvm *vm, qn_jloop *l, qn_jval *out)
{
    if (l->i_ahead < l->ahead.n) {
        *out = l->ahead.v[l->i_ahead];
        return true;
    }
    if (!draw(vm, l, out)) return false;
    return out->type == QN_J_MISSING || qn_jl_add(vm, &l->ahead, *out);
}

bool qn_jloop_length(qn_jvm *vm, qn_jloop *l, int64_t *n)
{
    if (l->length < 0 && !l->node->c) l->length = (int64_t)l->seq.n;
    while (l->length < 0) {
        qn_jval v;
        if (!draw(vm, l, &v)) return false;
        if (v.type == QN_J_MISSING) l->length = l->index0 + 1 + (int64_t)(l->ahead.n - l->i_ahead);
        else if (!qn_jl_add(vm, &l->ahead, v)) return false;
    }
    *n = l->length;
    return true;
}

/* Step to the next item. */
static bool advance(qn_jvm *vm, qn_jloop *l, bool *more)
{
    qn_jval v;
    if (l->i_ahead < l->ahead.n) v = l->ahead.v[l->i_ahead++];
    else if (!draw(vm, l, &v)) return false;
    *more = v.type != QN_J_MISSING;
    if (!*more) return true;
    l->index0++;
    l->before = l->current;
    l->current = v;
    return true;
}

static qn_jrun run_else(qn_jvm *vm, const qn_jnode *n, qn_jenv *env)
{
    qn_jenv *inner = enter_scope(vm, n->scope_else, env);
    return inner ? qn_jexec(vm, &n->alt, inner) : QN_JRUN_FAIL;
}

static qn_jrun run_loop(qn_jvm *vm, qn_jloop *l, qn_jenv *env)
{
    const qn_jnode *n = l->node;
    qn_jenv *inner = qn_jenv_new(vm, n->scope, env);
    bool more, finished = false; /* a body that ran to its end rules out the else; Jinja's break and continue do not */
    if (!inner) return QN_JRUN_FAIL;
    for (;;) {
        if (!advance(vm, l, &more)) return QN_JRUN_FAIL;
        if (!more) break;
        if (!qn_jenv_load(vm, inner) || !qn_jexec_assign(vm, n->a, inner, l->current)) return QN_JRUN_FAIL;
        if (n->op) inner->slot[n->slot] = QN_JV(QN_J_LOOP, loop, l);
        const qn_jrun run = qn_jexec(vm, &n->kid, inner);
        if (run == QN_JRUN_FAIL) return run;
        if (run == QN_JRUN_BREAK) break;
        if (run == QN_JRUN_ON) finished = true;
    }
    return n->ctx && !finished ? run_else(vm, n, env) : QN_JRUN_ON;
}

qn_jrun qn_jexec_loop(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval items, int32_t depth)
{
    qn_jloop *l = qn_jvm_new(vm, 1, sizeof *l);
    if (!l) return QN_JRUN_FAIL;
    *l = (qn_jloop){ .index0 = -1, .length = -1, .depth0 = depth, .node = n, .env = env };
    vm->line = n->line;
    if (!qn_jv_seq(vm, items, &l->seq)) return QN_JRUN_FAIL;
    if (n->c && !(l->env_test = enter_scope(vm, n->scope_test, env))) return QN_JRUN_FAIL;
    return run_loop(vm, l, env);
}

/* ---- statements ---- */

typedef qn_jrun (*handler)(qn_jvm *vm, const qn_jnode *n, qn_jenv *env);

static qn_jrun on(bool ok)
{
    return ok ? QN_JRUN_ON : QN_JRUN_FAIL;
}

static qn_jrun exec_text(qn_jvm *vm, const qn_jnode *n, qn_jenv *env)
{
    (void)env;
    return on(qn_jbuf_str(vm->out, n->val.s));
}

static qn_jrun exec_output(qn_jvm *vm, const qn_jnode *n, qn_jenv *env)
{
    qn_jval v;
    if (n->a) return on(qn_jeval(vm, n->a, env, &v) && print(vm, v));
    for (size_t i = 0; i < n->kid.n; i++)
        if (!qn_jeval(vm, n->kid.v[i], env, &v) || !print(vm, v)) return QN_JRUN_FAIL;
    return QN_JRUN_ON;
}

static qn_jrun exec_for(qn_jvm *vm, const qn_jnode *n, qn_jenv *env)
{
    qn_jval items;
    return qn_jeval(vm, n->b, env, &items) ? qn_jexec_loop(vm, n, env, items, 0) : QN_JRUN_FAIL;
}

static qn_jrun exec_if(qn_jvm *vm, const qn_jnode *n, qn_jenv *env)
{
    qn_jval v;
    if (!qn_jeval(vm, n->a, env, &v)) return QN_JRUN_FAIL;
    if (qn_jv_truth(vm, v)) return qn_jexec(vm, &n->kid, env);
    for (size_t i = 0; i < n->more.n; i++) {
        const qn_jnode *elif = n->more.v[i];
        if (!qn_jeval(vm, elif->a, env, &v)) return QN_JRUN_FAIL;
        if (qn_jv_truth(vm, v)) return qn_jexec(vm, &elif->kid, env);
    }
    return qn_jexec(vm, &n->alt, env);
}

static qn_jrun exec_set(qn_jvm *vm, const qn_jnode *n, qn_jenv *env)
{
    qn_jval v;
    return on(qn_jeval(vm, n->b, env, &v) && qn_jexec_assign(vm, n->a, env, v));
}

static qn_jrun exec_setblock(qn_jvm *vm, const qn_jnode *n, qn_jenv *env)
{
    qn_jval v;
    qn_jenv *inner = enter_scope(vm, n->scope, env);
    if (!inner) return QN_JRUN_FAIL;
    const qn_jrun run = qn_jexec_captured(vm, &n->kid, inner, &v);
    if (run != QN_JRUN_ON) return run;
    if (n->b && !qn_jeval_filter_on(vm, n->b, inner, v, &v)) return QN_JRUN_FAIL;
    if (vm->autoescape && v.type == QN_J_STR) v.markup = true;
    return on(qn_jexec_assign(vm, n->a, env, v));
}

static qn_jrun exec_with(qn_jvm *vm, const qn_jnode *n, qn_jenv *env)
{
    qn_jenv *inner = enter_scope(vm, n->scope, env);
    if (!inner) return QN_JRUN_FAIL;
    for (size_t i = 0; i < n->more.n; i++) {
        qn_jval v;
        if (!qn_jeval(vm, n->alt.v[i], env, &v) || !qn_jexec_assign(vm, n->more.v[i], inner, v)) return QN_JRUN_FAIL;
    }
    return qn_jexec(vm, &n->kid, inner);
}

static bool new_macro(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval *out)
{
    qn_jmacro *m = qn_jvm_new(vm, 1, sizeof *m);
    if (!m) return false;
    *m = (qn_jmacro){ n, env, vm->autoescape };
    *out = QN_JV(QN_J_MACRO, macro, m);
    return true;
}

static qn_jrun exec_macro(qn_jvm *vm, const qn_jnode *n, qn_jenv *env)
{
    qn_jval m;
    if (!new_macro(vm, n, env, &m)) return QN_JRUN_FAIL;
    env->slot[n->slot] = m;
    return on(!env->scope->toplevel || qn_jd_set(vm, vm->vars, qn_jv_str(n->name), m));
}

/* {% call f(x) %}body{% endcall %}: f(x, caller=body). */
static qn_jrun exec_callblock(qn_jvm *vm, const qn_jnode *n, qn_jenv *env)
{
    if (!n->a) { /* a generation block is a scope and nothing else */
        qn_jenv *inner = enter_scope(vm, n->scope, env);
        return inner ? qn_jexec(vm, &n->kid, inner) : QN_JRUN_FAIL;
    }
    qn_jval fn, caller, v;
    qn_jargs args;
    if (!new_macro(vm, n, env, &caller) || !qn_jeval(vm, n->a->a, env, &fn) || !qn_jeval_args(vm, n->a, env, &args)) return QN_JRUN_FAIL;
    const qn_jstr **name = qn_jvm_new(vm, args.n_kw + 1, sizeof *name);
    qn_jval *kw = qn_jvm_new(vm, args.n_kw + 1, sizeof *kw);
    const qn_jstr *lit = qn_js_lit(vm, "caller");
    if (!name || !kw || !lit) return QN_JRUN_FAIL;
    for (size_t i = 0; i < args.n_kw; i++) {
        name[i] = args.name[i];
        kw[i] = args.kw[i];
    }
    name[args.n_kw] = lit;
    kw[args.n_kw++] = caller;
    args.name = name;
    args.kw = kw;
    vm->line = n->line;
    return on(qn_jcall_value(vm, fn, &args, &v) && qn_jbuf_display(vm->out, v));
}

static qn_jrun exec_filterblock(qn_jvm *vm, const qn_jnode *n, qn_jenv *env)
{
    qn_jval v;
    qn_jenv *inner = enter_scope(vm, n->scope, env);
    if (!inner) return QN_JRUN_FAIL;
    const qn_jrun run = qn_jexec_captured(vm, &n->kid, inner, &v);
    if (run != QN_JRUN_ON) return run;
    return on(qn_jeval_filter_on(vm, n->b, inner, v, &v) && qn_jbuf_display(vm->out, v));
}

/* The variables a scoped block sees: those of the template and everything set around it. */
static bool visible(qn_jvm *vm, const qn_jenv *env, qn_jdict *into)
{
    for (; env; env = env->parent) {
        for (size_t i = 0; i < env->scope->n; i++) {
            const qn_jsym *y = &env->scope->sym[i];
            const qn_jval *have;
            if (!y->stored || env->slot[i].type == QN_J_MISSING) continue;
            if (!qn_jd_get(vm, into, qn_jv_str(y->name), &have)) return false;
            if (!have && !qn_jd_set(vm, into, qn_jv_str(y->name), env->slot[i])) return false;
        }
    }
    for (size_t i = 0; i < vm->vars->n; i++) {
        const qn_jval *have;
        if (!qn_jd_get(vm, into, vm->vars->key[i], &have)) return false;
        if (!have && !qn_jd_set(vm, into, vm->vars->key[i], vm->vars->val[i])) return false;
    }
    return true;
}

static qn_jrun run_block(qn_jvm *vm, const qn_jnode *n)
{
    const bool autoescape = vm->autoescape;
    qn_jenv *inner = enter_scope(vm, n->scope, NULL);
    if (!inner) return QN_JRUN_FAIL;
    if (n->slot >= 0) inner->slot[n->slot] = (qn_jval){ .type = QN_J_BLOCKS };
    vm->autoescape = false;
    const qn_jrun run = qn_jexec(vm, &n->kid, inner);
    vm->autoescape = autoescape;
    return run;
}

static qn_jrun exec_block(qn_jvm *vm, const qn_jnode *n, qn_jenv *env)
{
    qn_jdict *vars = vm->vars;
    if (n->flag) {
        qn_jdict *seen = qn_jd_new(vm);
        if (!seen || !visible(vm, env, seen)) return QN_JRUN_FAIL;
        vm->vars = seen;
    }
    const qn_jrun run = run_block(vm, n);
    vm->vars = vars;
    return run;
}

bool qn_jblock_call(qn_jvm *vm, const qn_jnode *block, qn_jval *out)
{
    qn_jbuf b = { .vm = vm }, *outer = vm->out;
    if (!qn_jvm_enter(vm)) return false;
    vm->out = &b;
    const qn_jrun run = run_block(vm, block);
    vm->out = outer;
    qn_jvm_leave(vm);
    return run == QN_JRUN_ON && qn_jbuf_value(&b, vm->autoescape, out);
}

static qn_jrun exec_autoescape(qn_jvm *vm, const qn_jnode *n, qn_jenv *env)
{
    const bool before = vm->autoescape;
    qn_jval v;
    qn_jenv *inner = enter_scope(vm, n->scope, env);
    if (!inner || !qn_jeval(vm, n->a, inner, &v)) return QN_JRUN_FAIL;
    vm->autoescape = qn_jv_truth(vm, v);
    const qn_jrun run = qn_jexec(vm, &n->kid, inner);
    vm->autoescape = before;
    return run;
}

static qn_jrun exec_break(qn_jvm *vm, const qn_jnode *n, qn_jenv *env)
{
    (void)vm, (void)env;
    return n->kind == QN_JN_BREAK ? QN_JRUN_BREAK : QN_JRUN_CONTINUE;
}

static qn_jrun exec_loader(qn_jvm *vm, const qn_jnode *n, qn_jenv *env)
{
    (void)env;
    vm->line = n->line;
    return on(qn_jvm_fail(vm, "'%.*s' needs another template, and there is none", QN_STR_ARG(((qn_str){ n->val.s->p, n->val.s->n }))));
}

static const handler handlers[] = {
    [QN_JN_TEXT] = exec_text,           [QN_JN_OUTPUT] = exec_output,     [QN_JN_FOR] = exec_for,
    [QN_JN_IF] = exec_if,               [QN_JN_SET] = exec_set,           [QN_JN_SETBLOCK] = exec_setblock,
    [QN_JN_WITH] = exec_with,           [QN_JN_MACRO] = exec_macro,       [QN_JN_CALLBLOCK] = exec_callblock,
    [QN_JN_FILTERBLOCK] = exec_filterblock, [QN_JN_BLOCK] = exec_block,   [QN_JN_AUTOESCAPE] = exec_autoescape,
    [QN_JN_BREAK] = exec_break,         [QN_JN_CONTINUE] = exec_break,    [QN_JN_LOADER] = exec_loader,
};

qn_jrun qn_jexec(qn_jvm *vm, const qn_jlistn *body, qn_jenv *env)
{
    if (!qn_jvm_enter(vm)) return QN_JRUN_FAIL;
    for (size_t i = 0; i < body->n; i++) {
        const qn_jnode *n = body->v[i];
        if (!qn_jvm_charge(vm, 1)) return QN_JRUN_FAIL;
        const qn_jrun run = handlers[n->kind](vm, n, env);
        if (run != QN_JRUN_ON) return vm->depth--, run;
    }
    qn_jvm_leave(vm);
    return QN_JRUN_ON;
}

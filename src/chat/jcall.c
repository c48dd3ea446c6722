/* Calls: macros with their special parameters, native functions with theirs, and the callables of Jinja. */
#include "src/chat/jast.h"

#include <string.h>

/* ---- native functions ---- */

typedef struct param {
    const char *name;
    size_t n;
    bool optional, rest;
} param;

/* The next parameter of "value,width?,*"; false at the end. */
static bool next_param(const char **at, param *p)
{
    if (!*at) return false;
    const size_t n = strcspn(*at, ",");
    *p = (param){ .name = *at, .n = n, .rest = n == 1 && **at == '*' };
    p->optional = n && (*at)[n - 1] == '?';
    if (p->optional) p->n--;
    *at = (*at)[n] == ',' ? *at + n + 1 : NULL; /* "self,": a second one without a name */
    return true;
}

static bool bind_named(qn_jvm *vm, qn_jcall *c, size_t i_kw)
{
    const qn_jstr *name = c->raw->name[i_kw];
    const char *at = c->fn->params;
    param p;
    for (size_t i = 0; next_param(&at, &p); i++) {
        if (!p.n || p.n != name->n || memcmp(p.name, name->p, p.n)) continue;
        if (qn_jarg_given(c->a[i])) return qn_jvm_fail(vm, "%s() got multiple values for argument '%.*s'", c->fn->name, (int)p.n, p.name);
        c->a[i] = c->raw->kw[i_kw];
        return true;
    }
    return qn_jvm_fail(vm, "%s() got an unexpected keyword argument '%.*s'", c->fn->name, QN_STR_ARG(((qn_str){ name->p, name->n })));
}

static bool bind(qn_jvm *vm, qn_jcall *c, qn_jval self)
{
    const char *at = c->fn->params;
    const qn_jargs *args = c->raw;
    size_t i_pos = 0, i = 0;
    param p;
    for (; next_param(&at, &p); i++) {
        if (p.rest) return true;
        if (i == 0 && self.type != QN_J_MISSING) c->a[0] = self;
        else if (i_pos < args->n_pos) c->a[i] = args->pos[i_pos++];
    }
    if (i_pos < args->n_pos) return qn_jvm_fail(vm, "%s() takes fewer arguments: %zu were given", c->fn->name, args->n_pos);
    for (size_t k = 0; k < args->n_kw; k++)
        if (!bind_named(vm, c, k)) return false;
    at = c->fn->params;
    for (i = 0; next_param(&at, &p); i++)
        if (!p.optional && !qn_jarg_given(c->a[i]))
            return qn_jvm_fail(vm, "%s() missing a required argument '%.*s'", c->fn->name, (int)p.n, p.name);
    return true;
}

bool qn_jcall_native(qn_jvm *vm, const qn_jfn *fn, qn_jval self, const qn_jargs *args, qn_jval *out)
{
    qn_jcall c;
    memset(&c, 0, sizeof c);
    c.fn = fn;
    c.raw = args;
    return qn_jvm_charge(vm, 1) && bind(vm, &c, self) && fn->run(vm, &c, out);
}

const qn_jfn *qn_jfn_in(const qn_jfn *table, const qn_jstr *name)
{
    for (; table->name; table++)
        if (qn_js_is(name, table->name)) return table;
    return NULL;
}

bool qn_jfn_is_test(qn_jvm *vm, const qn_jfn *test, qn_jval v, const qn_jargs *args, bool *yes)
{
    qn_jval out;
    if (!qn_jcall_native(vm, test, v, args, &out)) return false;
    *yes = qn_jv_truth(vm, out);
    return true;
}

bool qn_jarg_int(qn_jvm *vm, qn_jval v, int64_t *out)
{
    if (v.type == QN_J_UNDEF) return qn_jv_undef_fail(vm, v);
    if (!qn_jv_integral(v)) return qn_jvm_fail(vm, "'%s' object cannot be interpreted as an integer", qn_jv_type_name(v));
    *out = qn_jv_as_int(v);
    return true;
}

bool qn_jarg_int_or(qn_jvm *vm, qn_jval v, int64_t otherwise, int64_t *out)
{
    *out = otherwise;
    return !qn_jarg_given(v) || qn_jarg_int(vm, v, out);
}

const qn_jstr *qn_jarg_str(qn_jvm *vm, qn_jval v)
{
    if (v.type == QN_J_STR) return v.s;
    qn_jvm_fail(vm, "must be str, not %s", qn_jv_type_name(v));
    return NULL;
}

/* ---- macros ---- */

/* Which keyword arguments have found a parameter. */
typedef struct taken {
    bool *kw;
    size_t n_left;
} taken;

static bool take(const qn_jargs *args, taken *t, const char *name, size_t n, qn_jval *out)
{
    for (size_t i = 0; i < args->n_kw; i++) {
        if (t->kw[i] || args->name[i]->n != n || memcmp(args->name[i]->p, name, n)) continue;
        t->kw[i] = true;
        t->n_left--;
        *out = args->kw[i];
        return true;
    }
    return false;
}

static bool bind_params(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, const qn_jargs *args, taken *t)
{
    for (size_t i = 0; i < n->more.n; i++) {
        const qn_jnode *p = n->more.v[i];
        qn_jval *slot = &env->slot[p->slot];
        if (i < args->n_pos) *slot = args->pos[i];
        else take(args, t, p->name->p, p->name->n, slot);
    }
    return qn_jvm_charge(vm, n->more.n * (1 + args->n_kw / 4));
}

static bool bind_special(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, const qn_jargs *args, taken *t)
{
    if (n->slot_special[0] >= 0) {
        qn_jval *slot = &env->slot[n->slot_special[0]];
        if (!take(args, t, "caller", 6, slot) && !qn_jv_undef_hint(vm, "No caller defined", slot)) return false;
    }
    if (n->slot_special[1] >= 0) {
        qn_jdict *d = qn_jd_new(vm);
        if (!d) return false;
        for (size_t i = 0; i < args->n_kw; i++)
            if (!t->kw[i] && !qn_jd_set(vm, d, qn_jv_str(args->name[i]), args->kw[i])) return false;
        env->slot[n->slot_special[1]] = QN_JV(QN_J_DICT, d, d);
        t->n_left = 0;
    }
    if (n->slot_special[2] >= 0) {
        qn_jlist *l = qn_jl_new(vm, 0);
        if (!l) return false;
        for (size_t i = n->more.n; i < args->n_pos; i++)
            if (!qn_jl_add(vm, l, args->pos[i])) return false;
        env->slot[n->slot_special[2]] = QN_JV(QN_J_TUPLE, l, l);
    }
    return true;
}

static bool check_left(qn_jvm *vm, const qn_jnode *n, const qn_jargs *args, const taken *t)
{
    const qn_str name = n->name ? (qn_str){ n->name->p, n->name->n } : QN_LIT("None");
    for (size_t i = 0; t->n_left && i < args->n_kw; i++)
        if (!t->kw[i])
            return qn_jvm_fail(vm, "macro '%.*s' takes no keyword argument '%.*s'", QN_STR_ARG(name),
                               QN_STR_ARG(((qn_str){ args->name[i]->p, args->name[i]->n })));
    if (n->slot_special[2] < 0 && args->n_pos > n->more.n)
        return qn_jvm_fail(vm, "macro '%.*s' takes not more than %zu argument(s)", QN_STR_ARG(name), n->more.n);
    return true;
}

static bool fill_defaults(qn_jvm *vm, const qn_jnode *n, qn_jenv *env)
{
    const size_t first = n->more.n - n->alt.n; /* parameter with the first default */
    for (size_t i = 0; i < n->more.n; i++) {
        qn_jval *slot = &env->slot[n->more.v[i]->slot];
        if (slot->type != QN_J_MISSING) continue;
        if (i >= first ? !qn_jeval(vm, n->alt.v[i - first], env, slot) : !qn_jv_undef_name(vm, n->more.v[i]->name, slot)) return false;
    }
    return true;
}

bool qn_jmacro_call(qn_jvm *vm, qn_jmacro *m, const qn_jargs *args, qn_jval *out)
{
    const qn_jnode *n = m->node;
    if (vm->n_calls >= vm->max_calls)
        return qn_jvm_stop(vm, QN_ERR_LIMIT, "template line %d: more than %d macro calls inside each other", (int)vm->line, (int)vm->max_calls);
    if (!qn_jvm_enter(vm)) return false;
    vm->n_calls++;
    taken t = { qn_jvm_new(vm, args->n_kw, sizeof(bool)), args->n_kw };
    qn_jenv *env = qn_jenv_new(vm, n->scope, m->env);
    if (!t.kw || !env || !qn_jenv_load(vm, env)) return false;
    if (!bind_params(vm, n, env, args, &t) || !bind_special(vm, n, env, args, &t) || !check_left(vm, n, args, &t)) return false;
    if (!fill_defaults(vm, n, env)) return false;
    const bool autoescape = vm->autoescape;
    vm->autoescape = m->autoescape;
    const qn_jrun run = qn_jexec_captured(vm, &n->kid, env, out);
    vm->autoescape = autoescape;
    if (run != QN_JRUN_ON) return false;
    out->markup = autoescape;
    vm->n_calls--;
    qn_jvm_leave(vm);
    return true;
}

/* ---- everything that can be called ---- */

bool qn_jloop_call(qn_jvm *vm, const qn_jloop *parent, qn_jval items, qn_jval *out)
{
    if (!parent->node->flag) return qn_jvm_fail(vm, "The loop must have the 'recursive' marker to be called recursively.");
    if (!qn_jvm_enter(vm)) return false;
    qn_jbuf b = { .vm = vm }, *outer = vm->out;
    vm->out = &b;
    const qn_jrun run = qn_jexec_loop(vm, parent->node, parent->env, items, parent->depth0 + 1);
    vm->out = outer;
    qn_jvm_leave(vm);
    return run == QN_JRUN_ON && qn_jbuf_value(&b, vm->autoescape, out);
}

static bool call_joiner(qn_jvm *vm, qn_jcycler *j, qn_jval *out)
{
    const qn_jstr *empty = qn_js_lit(vm, "");
    if (!empty) return false;
    *out = j->at ? j->l->v[0] : qn_jv_str(empty);
    j->at = 1;
    return true;
}

bool qn_jcall_value(qn_jvm *vm, qn_jval fn, const qn_jargs *args, qn_jval *out)
{
    switch (fn.type) {
    case QN_J_NATIVE: return qn_jcall_native(vm, fn.bound->fn, fn.bound->self, args, out);
    case QN_J_MACRO: return qn_jmacro_call(vm, fn.macro, args, out);
    case QN_J_UNDEF: return qn_jv_undef_fail(vm, fn);
    case QN_J_LOOP:
        if (args->n_pos != 1 || args->n_kw) return qn_jvm_fail(vm, "loop() takes one argument");
        return qn_jloop_call(vm, fn.loop, args->pos[0], out);
    case QN_J_JOINER:
    case QN_J_BLOCK:
        if (args->n_pos || args->n_kw) return qn_jvm_fail(vm, "%s takes no arguments", qn_jv_type_name(fn));
        return fn.type == QN_J_JOINER ? call_joiner(vm, fn.cycler, out) : qn_jblock_call(vm, fn.block, out);
    default: return qn_jvm_fail(vm, "'%s' object is not callable", qn_jv_type_name(fn));
    }
}

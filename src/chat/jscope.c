/* Which slot each name lives in.
 *
 * Jinja compiles a template to a Python function, and what a name means follows from that: every scope (the template, a loop's body, a
 * macro ...) is looked through as a whole before any of it runs, and a name that is set anywhere in it is a local variable of it from its
 * begin on. The rules of loading (from the context, from an outer scope, or nothing yet) are kept here to the letter, since templates lean
 * on them: `set` in a loop does not leak, but a branch of `if` is no scope. */
#include "src/chat/jast.h"

#include <string.h>

typedef struct resolver {
    qn_jvm *vm;
    bool soft;       /* inside a condition: an unknown filter fails only when it is reached         */
    bool in_loop;    /* break and continue have something to leave                              */
    int32_t n_for;   /* loops around, across macros                                             */
    qn_jlistn blocks;
} resolver;

static bool walk(resolver *r, qn_jnode *n, qn_jscope *scope);
static bool symbols(resolver *r, const qn_jnode *n, qn_jscope *s, bool as_param);

/* ---- symbol tables ---- */

static qn_jsym *lookup(const qn_jscope *s, const qn_jstr *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (qn_js_eq(s->sym[i].name, name)) return &s->sym[i];
    return NULL;
}

static bool find_ref(const qn_jscope *s, const qn_jstr *name, int32_t *hops, int32_t *slot)
{
    for (*hops = 0; s; s = s->parent, ++*hops) {
        const qn_jsym *y = lookup(s, name);
        if (!y) continue;
        *slot = (int32_t)(y - s->sym);
        return true;
    }
    return false;
}

static qn_jsym *define(qn_jvm *vm, qn_jscope *s, const qn_jstr *name, int load)
{
    if (!qn_jvm_charge(vm, 1 + s->n / 8)) return NULL;
    qn_jsym *y = lookup(s, name);
    if (!y) {
        if (s->n == s->cap) {
            const size_t cap = s->cap ? s->cap * 2 : 8;
            qn_jsym *p = qn_jarena_grow(vm->mem, s->sym, s->cap * sizeof *p, cap * sizeof *p);
            if (!p) return qn_jvm_no_memory(vm), NULL;
            s->sym = p;
            s->cap = cap;
        }
        y = &s->sym[s->n++];
        *y = (qn_jsym){ .name = name };
    }
    y->load = (uint8_t)load;
    return y;
}

static bool load_name(qn_jvm *vm, qn_jscope *s, const qn_jstr *name)
{
    int32_t hops, slot;
    if (!qn_jvm_charge(vm, 1 + s->n / 8)) return false;
    return find_ref(s, name, &hops, &slot) || define(vm, s, name, QN_JLOAD_RESOLVE);
}

static bool store_name(qn_jvm *vm, qn_jscope *s, const qn_jstr *name)
{
    qn_jsym *y = lookup(s, name);
    if (!y) {
        int32_t hops, slot;
        const bool outer = s->parent && find_ref(s->parent, name, &hops, &slot);
        y = define(vm, s, name, outer ? QN_JLOAD_ALIAS : QN_JLOAD_UNDEFINED);
        if (!y) return false;
        if (outer) y->hops = hops + 1, y->slot = slot;
    }
    y->stored = true;
    return true;
}

static bool param_name(qn_jvm *vm, qn_jscope *s, const qn_jstr *name)
{
    qn_jsym *y = define(vm, s, name, QN_JLOAD_PARAM);
    if (y) y->stored = true;
    return y;
}

static bool copy_symbols(qn_jvm *vm, const qn_jscope *from, qn_jscope *to)
{
    *to = *from;
    if (!qn_jvm_charge(vm, from->n / 2)) return false;
    to->cap = from->n + 4;
    to->sym = qn_jvm_new(vm, to->cap, sizeof *to->sym);
    if (to->sym && from->n) memcpy(to->sym, from->sym, from->n * sizeof *to->sym);
    return to->sym;
}

/* After an if: what any branch sets is loaded from outside for the others. */
static bool merge_branches(qn_jvm *vm, qn_jscope *s, const qn_jscope branch[3])
{
    qn_jscope before;
    if (!copy_symbols(vm, s, &before)) return false;
    for (int b = 0; b < 3; b++) {
        for (size_t i = 0; i < branch[b].n; i++) {
            const qn_jsym from = branch[b].sym[i];
            qn_jsym *y = define(vm, s, from.name, from.load);
            if (!y) return false;
            y->hops = from.hops;
            y->slot = from.slot;
            y->stored = y->stored || from.stored;
        }
    }
    for (size_t i = 0; i < s->n; i++) {
        qn_jsym *y = &s->sym[i];
        const qn_jsym *old = lookup(&before, y->name);
        if (!y->stored || (old && old->stored)) continue;
        const bool outer = s->parent && find_ref(s->parent, y->name, &y->hops, &y->slot);
        y->load = outer ? QN_JLOAD_ALIAS : QN_JLOAD_RESOLVE;
        if (outer) y->hops++;
    }
    return true;
}

/* ---- what a scope names ---- */

static bool symbols_of(resolver *r, const qn_jlistn *l, qn_jscope *s)
{
    for (size_t i = 0; i < l->n; i++)
        if (!symbols(r, l->v[i], s, false)) return false;
    return true;
}

static bool symbols_if(resolver *r, const qn_jnode *n, qn_jscope *s)
{
    qn_jscope branch[3];
    if (!symbols(r, n->a, s, false)) return false;
    for (int b = 0; b < 3; b++) {
        const qn_jlistn *body = b == 0 ? &n->kid : b == 1 ? &n->more : &n->alt;
        if (!copy_symbols(r->vm, s, &branch[b]) || !symbols_of(r, body, &branch[b])) return false;
    }
    return merge_branches(r->vm, s, branch);
}

static bool symbols_children(resolver *r, const qn_jnode *n, qn_jscope *s, bool as_param)
{
    const qn_jnode *const one[] = { n->a, n->b, n->c };
    for (size_t i = 0; i < 3; i++)
        if (one[i] && !symbols(r, one[i], s, as_param)) return false;
    for (size_t i = 0; i < n->kid.n; i++)
        if (!symbols(r, n->kid.v[i], s, as_param)) return false;
    return true;
}

static bool symbols_name(resolver *r, const qn_jnode *n, qn_jscope *s, bool as_param)
{
    if (as_param || n->ctx == QN_JCTX_PARAM) return param_name(r->vm, s, n->name);
    return n->ctx == QN_JCTX_STORE ? store_name(r->vm, s, n->name) : load_name(r->vm, s, n->name);
}

/* A node of scope s; scopes within it are left alone, except for what they evaluate outside. */
static bool symbols(resolver *r, const qn_jnode *n, qn_jscope *s, bool as_param)
{
    if (!qn_jvm_enter(r->vm) || !qn_jvm_charge(r->vm, 1)) return false;
    bool ok = true;
    switch (n->kind) {
    case QN_JN_NAME: ok = symbols_name(r, n, s, as_param); break;
    case QN_JN_NSREF: ok = load_name(r->vm, s, n->name); break;
    case QN_JN_IF: ok = symbols_if(r, n, s); break;
    case QN_JN_MACRO: ok = store_name(r->vm, s, n->name); break;
    case QN_JN_SET: ok = symbols(r, n->b, s, false) && symbols(r, n->a, s, false); break;
    case QN_JN_FOR: ok = symbols(r, n->b, s, false); break;
    case QN_JN_CALLBLOCK: ok = !n->a || symbols(r, n->a, s, false); break;
    case QN_JN_FILTERBLOCK: ok = symbols(r, n->b, s, false); break;
    case QN_JN_WITH: ok = symbols_of(r, &n->alt, s); break;
    case QN_JN_SETBLOCK: ok = symbols(r, n->a, s, false); break;
    case QN_JN_AUTOESCAPE:
    case QN_JN_BLOCK: break;
    default: ok = symbols_children(r, n, s, as_param); break;
    }
    qn_jvm_leave(r->vm);
    return ok;
}

/* ---- is a name used in a body before it is set there? ---- */

enum { ABSENT = 0, LOADED, STORED, FAILED };

static int first_use(resolver *r, const qn_jnode *n, const char *name);

static int first_use_in(resolver *r, const qn_jlistn *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++) {
        const int use = first_use(r, l->v[i], name);
        if (use) return use;
    }
    return ABSENT;
}

static int first_use(resolver *r, const qn_jnode *n, const char *name)
{
    if (!qn_jvm_charge(r->vm, 1) || !qn_jvm_enter(r->vm)) return FAILED;
    int use = ABSENT;
    if (n->kind == QN_JN_NAME && qn_js_is(n->name, name)) use = n->ctx == QN_JCTX_LOAD ? LOADED : STORED;
    if (n->kind != QN_JN_BLOCK) {
        const qn_jnode *const one[] = { n->a, n->b, n->kind == QN_JN_FOR ? NULL : n->c };
        for (size_t i = 0; !use && i < 3; i++)
            if (one[i]) use = first_use(r, one[i], name);
        const qn_jlistn *const lists[] = { n->kind == QN_JN_IF || n->kind == QN_JN_FOR ? &n->kid : &n->more, n->kind == QN_JN_IF ? &n->more : &n->alt,
                                           n->kind == QN_JN_IF || n->kind == QN_JN_FOR ? &n->alt : &n->kid };
        for (size_t i = 0; !use && i < 3; i++) use = first_use_in(r, lists[i], name);
        if (!use && n->kind == QN_JN_FOR && n->c) use = first_use(r, n->c, name);
    }
    qn_jvm_leave(r->vm);
    return use;
}

static bool has_scoped_block(resolver *r, const qn_jlistn *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const qn_jnode *n = l->v[i];
        if (n->kind == QN_JN_BLOCK && n->flag) return true;
        if (!qn_jvm_charge(r->vm, 1)) return false;
        if (has_scoped_block(r, &n->kid) || has_scoped_block(r, &n->more) || has_scoped_block(r, &n->alt)) return true;
    }
    return false;
}

/* ---- scopes, outermost first ---- */

static qn_jscope *scope_new(resolver *r, qn_jscope *parent)
{
    qn_jscope *s = qn_jvm_new(r->vm, 1, sizeof *s);
    if (s) s->parent = parent;
    return s;
}

static bool walk_list(resolver *r, const qn_jlistn *l, qn_jscope *s)
{
    for (size_t i = 0; i < l->n; i++)
        if (!walk(r, l->v[i], s)) return false;
    return true;
}

/* The body of a scope: not soft any more, and with or without a loop around. */
static bool walk_body(resolver *r, const qn_jlistn *l, qn_jscope *s, bool in_loop)
{
    const bool soft = r->soft, loop = r->in_loop;
    r->soft = false;
    r->in_loop = in_loop;
    const bool ok = walk_list(r, l, s);
    r->soft = soft;
    r->in_loop = loop;
    return ok;
}

static bool lit_param(resolver *r, qn_jscope *s, const char *name, int32_t *slot)
{
    const qn_jstr *lit = qn_js_lit(r->vm, name);
    if (!lit) return false;
    qn_js_chars(lit);
    if (!param_name(r->vm, s, lit)) return false;
    int32_t hops;
    return find_ref(s, lit, &hops, slot);
}

static bool walk_for(resolver *r, qn_jnode *n, qn_jscope *s)
{
    if (!walk(r, n->b, s)) return false;
    const int use = n->flag ? LOADED : first_use_in(r, &n->kid, "loop");
    if (use == FAILED) return false;
    n->op = use == LOADED || has_scoped_block(r, &n->kid);
    if (!(n->scope = scope_new(r, s)) || !symbols(r, n->a, n->scope, true)) return false;
    if (n->op && !lit_param(r, n->scope, "loop", &n->slot)) return false;
    if (!symbols_of(r, &n->kid, n->scope)) return false;
    r->n_for++;
    if (!walk(r, n->a, n->scope)) return false;
    if (n->c) {
        const bool soft = r->soft;
        r->soft = false;
        if (!(n->scope_test = scope_new(r, s)) || !symbols(r, n->a, n->scope_test, true) || !symbols(r, n->c, n->scope_test, false)) return false;
        if (!walk(r, n->c, n->scope_test)) return false;
        r->soft = soft;
    }
    if (!walk_body(r, &n->kid, n->scope, true)) return false;
    if (n->ctx) {
        if (!(n->scope_else = scope_new(r, s)) || !symbols_of(r, &n->alt, n->scope_else)) return false;
        if (!walk_body(r, &n->alt, n->scope_else, r->in_loop && !n->flag)) return false;
    }
    r->n_for--;
    return true;
}

/* caller, kwargs and varargs are parameters of a macro whose body mentions them. */
static bool special_params(resolver *r, qn_jnode *n)
{
    static const char *const names[] = { "caller", "kwargs", "varargs" };
    for (int i = 0; i < 3; i++) {
        bool named = false;
        n->slot_special[i] = -1;
        for (size_t k = 0; k < n->more.n; k++) {
            if (!qn_js_is(n->more.v[k]->name, names[i])) continue;
            named = true;
            if (i == 0 && k + n->alt.n < n->more.n)
                return qn_jcompile_fail(r->vm, n->line, "the special \"caller\" argument must be omitted or be given a default.");
        }
        const int use = named ? ABSENT : first_use_in(r, &n->kid, names[i]);
        if (use == FAILED) return false;
        if (use == LOADED && !lit_param(r, n->scope, names[i], &n->slot_special[i])) return false;
    }
    return true;
}

static bool walk_macro(resolver *r, qn_jnode *n, qn_jscope *s)
{
    if (n->kind == QN_JN_MACRO && !find_ref(s, n->name, &n->hops, &n->slot)) return false;
    if (n->a && !walk(r, n->a, s)) return false;
    if (!(n->scope = scope_new(r, s)) || !symbols_of(r, &n->more, n->scope)) return false;
    if (!special_params(r, n)) return false;
    if (!symbols_of(r, &n->alt, n->scope) || !symbols_of(r, &n->kid, n->scope)) return false;
    return walk_body(r, &n->more, n->scope, false) && walk_body(r, &n->alt, n->scope, false) && walk_body(r, &n->kid, n->scope, false);
}

static bool walk_with(resolver *r, qn_jnode *n, qn_jscope *s)
{
    if (!walk_list(r, &n->alt, s)) return false;
    if (!(n->scope = scope_new(r, s)) || !symbols_of(r, &n->more, n->scope) || !symbols_of(r, &n->kid, n->scope)) return false;
    return walk_body(r, &n->more, n->scope, r->in_loop) && walk_body(r, &n->kid, n->scope, r->in_loop);
}

/* set, filter and autoescape blocks: expr is evaluated inside. */
static bool walk_inner(resolver *r, qn_jnode *n, qn_jnode *expr, qn_jscope *s)
{
    if (!(n->scope = scope_new(r, s)) || (expr && !symbols(r, expr, n->scope, false)) || !symbols_of(r, &n->kid, n->scope)) return false;
    const bool soft = r->soft;
    r->soft = false;
    if (expr && !walk(r, expr, n->scope)) return false;
    r->soft = soft;
    return walk_body(r, &n->kid, n->scope, r->in_loop);
}

static bool scope_with_self(resolver *r, qn_jnode *n)
{
    if (!(n->scope = scope_new(r, NULL))) return false;
    const int use = first_use_in(r, &n->kid, "self");
    if (use == FAILED || (use == LOADED && !lit_param(r, n->scope, "self", &n->slot))) return false;
    return symbols_of(r, &n->kid, n->scope);
}

static bool walk_block(resolver *r, qn_jnode *n)
{
    for (size_t i = 0; i < r->blocks.n; i++)
        if (qn_js_eq(r->blocks.v[i]->name, n->name))
            return qn_jcompile_fail(r->vm, n->line, "block '%.*s' defined twice", QN_STR_ARG(((qn_str){ n->name->p, n->name->n })));
    if (!qn_jvm_charge(r->vm, r->blocks.n)) return false;
    if (r->blocks.n == r->blocks.cap) {
        const size_t cap = r->blocks.cap ? r->blocks.cap * 2 : 4;
        qn_jnode **v = qn_jarena_grow(r->vm->mem, r->blocks.v, r->blocks.cap * sizeof *v, cap * sizeof *v);
        if (!v) return qn_jvm_no_memory(r->vm);
        r->blocks.v = v;
        r->blocks.cap = cap;
    }
    r->blocks.v[r->blocks.n++] = n;
    return scope_with_self(r, n) && walk_body(r, &n->kid, n->scope, false);
}

static bool walk_if(resolver *r, qn_jnode *n, qn_jscope *s)
{
    const bool soft = r->soft;
    r->soft = true;
    const bool ok = walk(r, n->a, s) && walk_list(r, &n->kid, s) && walk_list(r, &n->more, s) && walk_list(r, &n->alt, s);
    r->soft = soft;
    return ok;
}

static bool walk_cond(resolver *r, qn_jnode *n, qn_jscope *s)
{
    const bool soft = r->soft;
    r->soft = true;
    const bool ok = walk(r, n->a, s) && walk(r, n->b, s) && (!n->c || walk(r, n->c, s));
    r->soft = soft;
    return ok;
}

static bool walk_name(resolver *r, qn_jnode *n, const qn_jscope *s)
{
    if (n->kind == QN_JN_NAME && n->ctx == QN_JCTX_STORE && r->n_for && qn_js_is(n->name, "loop"))
        return qn_jcompile_fail(r->vm, n->line, "Can't assign to special loop variable in for-loop target");
    if (find_ref(s, n->name, &n->hops, &n->slot)) return qn_jvm_charge(r->vm, 1 + s->n / 8);
    return qn_jcompile_fail(r->vm, n->line, "the name has no scope");
}

static bool walk_children(resolver *r, qn_jnode *n, qn_jscope *s)
{
    const bool known = n->fn || (n->kind != QN_JN_FILTER && n->kind != QN_JN_TEST);
    if (!known && !r->soft) {
        return qn_jcompile_fail(r->vm, n->line, "No %s named '%.*s'.", n->kind == QN_JN_FILTER ? "filter" : "test",
                                QN_STR_ARG(((qn_str){ n->name->p, n->name->n })));
    }
    if ((n->a && !walk(r, n->a, s)) || (n->b && !walk(r, n->b, s)) || (n->c && !walk(r, n->c, s))) return false;
    return walk_list(r, &n->kid, s);
}

static bool walk_leave(resolver *r, const qn_jnode *n)
{
    if (r->in_loop) return true;
    return qn_jcompile_fail(r->vm, n->line, "'%s' outside loop", n->kind == QN_JN_BREAK ? "break" : "continue");
}

static bool walk(resolver *r, qn_jnode *n, qn_jscope *s)
{
    if (!qn_jvm_enter(r->vm) || !qn_jvm_charge(r->vm, 1)) return false;
    bool ok;
    switch (n->kind) {
    case QN_JN_NAME:
    case QN_JN_NSREF: ok = walk_name(r, n, s); break;
    case QN_JN_FOR: ok = walk_for(r, n, s); break;
    case QN_JN_IF: ok = walk_if(r, n, s); break;
    case QN_JN_COND: ok = walk_cond(r, n, s); break;
    case QN_JN_MACRO:
    case QN_JN_CALLBLOCK: ok = walk_macro(r, n, s); break;
    case QN_JN_WITH: ok = walk_with(r, n, s); break;
    case QN_JN_SETBLOCK: ok = walk(r, n->a, s) && walk_inner(r, n, n->b, s); break;
    case QN_JN_FILTERBLOCK: ok = walk_inner(r, n, n->b, s); break;
    case QN_JN_AUTOESCAPE: ok = walk_inner(r, n, n->a, s); break;
    case QN_JN_BLOCK: ok = walk_block(r, n); break;
    case QN_JN_BREAK:
    case QN_JN_CONTINUE: ok = walk_leave(r, n); break;
    default: ok = walk_children(r, n, s); break;
    }
    qn_jvm_leave(r->vm);
    return ok;
}

bool qn_jscope_resolve(qn_jvm *vm, qn_jnode *root)
{
    resolver r = { .vm = vm };
    if (!scope_with_self(&r, root)) return false;
    root->scope->toplevel = true;
    if (!walk_list(&r, &root->kid, root->scope)) return false;
    root->more = r.blocks; /* for self.name() */
    return true;
}

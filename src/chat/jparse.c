/* Expressions of Jinja, by precedence: if-else, or, and, not, comparisons and in, + -, ~, * / // %, **, unary, postfix, filters. */
#include "src/chat/jparse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool qn_jcompile_fail(qn_jvm *vm, int32_t line, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return qn_jvm_stop(vm, QN_ERR_FORMAT, "template line %d: %s", (int)line, text);
}

bool qn_jparse_fail(qn_jparser *x, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return qn_jcompile_fail(x->vm, x->t->line, "%s", text);
}

qn_jnode *qn_jnode_new(qn_jparser *x, int kind, int32_t line)
{
    qn_jnode *n = qn_jvm_new(x->vm, 1, sizeof *n);
    if (!n) return NULL;
    n->kind = (uint8_t)kind;
    n->line = line;
    n->slot = -1;
    return n;
}

bool qn_jnode_add(qn_jparser *x, qn_jlistn *l, qn_jnode *n)
{
    if (!n) return false;
    if (l->n == l->cap) {
        const size_t cap = l->cap ? l->cap * 2 : 4;
        qn_jnode **p = qn_jarena_grow(x->vm->mem, l->v, l->cap * sizeof *p, cap * sizeof *p);
        if (!p) return qn_jvm_no_memory(x->vm);
        l->v = p;
        l->cap = cap;
    }
    l->v[l->n++] = n;
    return true;
}

bool qn_jparse_enter(qn_jparser *x)
{
    if (x->depth >= x->vm->max_depth) {
        return qn_jvm_stop(x->vm, QN_ERR_LIMIT, "template line %d: nested more than %d levels deep", (int)x->t->line, (int)x->vm->max_depth);
    }
    x->depth++;
    return true;
}

bool qn_jparse_skip(qn_jparser *x, qn_jtok type)
{
    if (x->t->type != type) return false;
    x->t++;
    return true;
}

bool qn_jparse_is_word(const qn_jparser *x, const char *word)
{
    return x->t->type == QN_JT_NAME && qn_js_is(x->t->val.s, word);
}

bool qn_jparse_skip_word(qn_jparser *x, const char *word)
{
    if (!qn_jparse_is_word(x, word)) return false;
    x->t++;
    return true;
}

bool qn_jparse_expect(qn_jparser *x, qn_jtok type)
{
    if (qn_jparse_skip(x, type)) return true;
    if (x->t->type == QN_JT_EOF) return qn_jparse_fail(x, "unexpected end of template, expected '%s'.", qn_jtok_name(type));
    return qn_jparse_fail(x, "expected token '%s', got '%s'", qn_jtok_name(type), qn_jtok_name(x->t->type));
}

bool qn_jparse_name(qn_jparser *x, const qn_jstr **name)
{
    *name = x->t->val.s;
    return qn_jparse_expect(x, QN_JT_NAME);
}

/* ---- primaries ---- */

static qn_jnode *constant(qn_jparser *x, qn_jval v, int32_t line)
{
    qn_jnode *n = qn_jnode_new(x, QN_JN_CONST, line);
    if (n) n->val = v;
    return n;
}

static qn_jnode *name(qn_jparser *x, int flags)
{
    const int32_t line = x->t->line;
    const qn_jstr *s = x->t++->val.s;
    const bool yes = qn_js_is(s, "true") || qn_js_is(s, "True");
    if (yes || qn_js_is(s, "false") || qn_js_is(s, "False")) return constant(x, qn_jv_bool(yes), line);
    if (qn_js_is(s, "none") || qn_js_is(s, "None")) return constant(x, qn_jv_none(), line);
    const bool space = (flags & QN_JP_NAMESPACE) && qn_jparse_skip(x, QN_JT_DOT);
    qn_jnode *n = qn_jnode_new(x, space ? QN_JN_NSREF : QN_JN_NAME, line);
    if (!n) return NULL;
    n->name = s;
    return space && !qn_jparse_name(x, &n->attr) ? NULL : n;
}

/* 'a' "b" is one string. */
static qn_jnode *strings(qn_jparser *x)
{
    const int32_t line = x->t->line;
    const qn_jstr *s = x->t++->val.s;
    if (x->t->type == QN_JT_STRING) {
        qn_jbuf b = { .vm = x->vm };
        if (!qn_jbuf_str(&b, s)) return NULL;
        for (; x->t->type == QN_JT_STRING; x->t++)
            if (!qn_jbuf_str(&b, x->t->val.s)) return NULL;
        s = qn_jbuf_done(&b);
        if (!s) return NULL;
        qn_js_chars(s);
    }
    return constant(x, qn_jv_str(s), line);
}

static qn_jnode *list(qn_jparser *x)
{
    qn_jnode *n = qn_jnode_new(x, QN_JN_LIST, x->t++->line);
    if (!n) return NULL;
    while (x->t->type != QN_JT_RBRACKET) {
        if (n->kid.n && !qn_jparse_expect(x, QN_JT_COMMA)) return NULL;
        if (x->t->type == QN_JT_RBRACKET) break;
        if (!qn_jnode_add(x, &n->kid, qn_jparse_expr(x, true))) return NULL;
    }
    return qn_jparse_expect(x, QN_JT_RBRACKET) ? n : NULL;
}

static qn_jnode *dict(qn_jparser *x)
{
    qn_jnode *n = qn_jnode_new(x, QN_JN_DICT, x->t++->line);
    if (!n) return NULL;
    while (x->t->type != QN_JT_RBRACE) {
        if (n->kid.n && !qn_jparse_expect(x, QN_JT_COMMA)) return NULL;
        if (x->t->type == QN_JT_RBRACE) break;
        if (!qn_jnode_add(x, &n->kid, qn_jparse_expr(x, true)) || !qn_jparse_expect(x, QN_JT_COLON)) return NULL;
        if (!qn_jnode_add(x, &n->kid, qn_jparse_expr(x, true))) return NULL;
    }
    return qn_jparse_expect(x, QN_JT_RBRACE) ? n : NULL;
}

static qn_jnode *parenthesized(qn_jparser *x)
{
    x->t++;
    qn_jnode *n = qn_jparse_tuple(x, QN_JP_PARENS, NULL);
    return n && qn_jparse_expect(x, QN_JT_RPAREN) ? n : NULL;
}

static qn_jnode *primary(qn_jparser *x, int flags)
{
    switch (x->t->type) {
    case QN_JT_NAME: return name(x, flags);
    case QN_JT_STRING: return strings(x);
    case QN_JT_NUMBER: {
        const qn_jtoken *t = x->t++;
        return constant(x, t->val, t->line);
    }
    case QN_JT_LPAREN: return parenthesized(x);
    case QN_JT_LBRACKET: return list(x);
    case QN_JT_LBRACE: return dict(x);
    case QN_JT_EOF: qn_jparse_fail(x, "unexpected end of template, expected 'end of print statement'."); return NULL;
    default: qn_jparse_fail(x, "unexpected '%s'", qn_jtok_name(x->t->type)); return NULL;
    }
}

static bool at_tuple_end(const qn_jparser *x, const char *end_word)
{
    const qn_jtok t = x->t->type;
    return t == QN_JT_VAR_END || t == QN_JT_BLOCK_END || t == QN_JT_RPAREN || (end_word && qn_jparse_is_word(x, end_word));
}

qn_jnode *qn_jparse_tuple(qn_jparser *x, int flags, const char *end_word)
{
    if (!qn_jparse_enter(x)) return NULL;
    qn_jnode *n = qn_jnode_new(x, QN_JN_TUPLE, x->t->line);
    bool is_tuple = false;
    while (n) {
        if (n->kid.n && !qn_jparse_expect(x, QN_JT_COMMA)) return NULL;
        if (at_tuple_end(x, end_word)) break;
        qn_jnode *item = flags & QN_JP_SIMPLE ? primary(x, flags) : qn_jparse_expr(x, !(flags & QN_JP_NO_COND));
        if (!qn_jnode_add(x, &n->kid, item)) return NULL;
        if (x->t->type != QN_JT_COMMA) break;
        is_tuple = true;
    }
    x->depth--;
    if (!n || is_tuple) return n;
    if (n->kid.n) return n->kid.v[0];
    if (flags & QN_JP_PARENS) return n;
    qn_jparse_fail(x, "Expected an expression, got '%s'", qn_jtok_name(x->t->type));
    return NULL;
}

/* ---- postfix: .name [key] (args) ---- */

static bool argument(qn_jparser *x, qn_jnode *call, bool *named, bool *starred)
{
    const int32_t line = x->t->line;
    const qn_jtok t = x->t->type;
    qn_jnode *n;
    if (t == QN_JT_MUL || t == QN_JT_POW) {
        x->t++;
        n = qn_jnode_new(x, t == QN_JT_MUL ? QN_JN_STAR : QN_JN_STARSTAR, line);
        *starred = true;
    } else if (t == QN_JT_NAME && x->t[1].type == QN_JT_ASSIGN) {
        n = qn_jnode_new(x, QN_JN_KEYWORD, line);
        if (n) n->name = x->t->val.s;
        x->t += 2;
        *named = true;
    } else {
        if (*named || *starred) return qn_jparse_fail(x, "invalid syntax for function call expression");
        return qn_jnode_add(x, &call->kid, qn_jparse_expr(x, true));
    }
    if (!n || !(n->a = qn_jparse_expr(x, true))) return false;
    return qn_jnode_add(x, &call->kid, n);
}

static bool arguments(qn_jparser *x, qn_jnode *call)
{
    bool named = false, starred = false;
    if (!qn_jparse_expect(x, QN_JT_LPAREN)) return false;
    while (x->t->type != QN_JT_RPAREN) {
        if (call->kid.n && !qn_jparse_expect(x, QN_JT_COMMA)) return false;
        if (x->t->type == QN_JT_RPAREN) break;
        if (!argument(x, call, &named, &starred)) return false;
    }
    return qn_jparse_expect(x, QN_JT_RPAREN);
}

static qn_jnode *call(qn_jparser *x, qn_jnode *callee)
{
    qn_jnode *n = qn_jnode_new(x, QN_JN_CALL, x->t->line);
    if (!n) return NULL;
    n->a = callee;
    return arguments(x, n) ? n : NULL;
}

/* a  a:b  a:b:c  :  ::c */
static qn_jnode *subscribed(qn_jparser *x)
{
    qn_jnode *part[3] = { NULL, NULL, NULL };
    const int32_t line = x->t->line;
    int i = 0;
    if (x->t->type != QN_JT_COLON) {
        part[0] = qn_jparse_expr(x, true);
        if (!part[0] || x->t->type != QN_JT_COLON) return part[0];
    }
    while (qn_jparse_skip(x, QN_JT_COLON)) {
        if (++i > 2) {
            qn_jparse_fail(x, "expected token ']', got ':'");
            return NULL;
        }
        const qn_jtok t = x->t->type;
        if (t != QN_JT_COLON && t != QN_JT_RBRACKET && t != QN_JT_COMMA && !(part[i] = qn_jparse_expr(x, true))) return NULL;
    }
    qn_jnode *n = qn_jnode_new(x, QN_JN_SLICE, line);
    if (!n) return NULL;
    n->a = part[0];
    n->b = part[1];
    n->c = part[2];
    return n;
}

static qn_jnode *subscript(qn_jparser *x, qn_jnode *object)
{
    qn_jnode *n = qn_jnode_new(x, QN_JN_ITEM, x->t->line), *keys;
    if (!n) return NULL;
    n->a = object;
    if (qn_jparse_skip(x, QN_JT_DOT)) {
        if (x->t->type == QN_JT_NUMBER && x->t->val.type == QN_J_INT) {
            n->b = constant(x, x->t->val, x->t->line);
            x->t++;
            return n->b ? n : NULL;
        }
        n->kind = QN_JN_ATTR;
        return qn_jparse_name(x, &n->name) ? n : NULL;
    }
    x->t++;
    keys = qn_jnode_new(x, QN_JN_TUPLE, x->t->line);
    if (!keys) return NULL;
    while (x->t->type != QN_JT_RBRACKET) {
        if (keys->kid.n && !qn_jparse_expect(x, QN_JT_COMMA)) return NULL;
        if (!qn_jnode_add(x, &keys->kid, subscribed(x))) return NULL;
    }
    x->t++;
    n->b = keys->kid.n == 1 ? keys->kid.v[0] : keys;
    return n;
}

static qn_jnode *postfix(qn_jparser *x, qn_jnode *n)
{
    while (n) {
        if (x->t->type == QN_JT_DOT || x->t->type == QN_JT_LBRACKET) n = subscript(x, n);
        else if (x->t->type == QN_JT_LPAREN) n = call(x, n);
        else break;
    }
    return n;
}

/* ---- filters and tests ---- */

/* "name" or "name.more": one string. */
static bool dotted_name(qn_jparser *x, const qn_jstr **out)
{
    if (!qn_jparse_name(x, out)) return false;
    while (qn_jparse_skip(x, QN_JT_DOT)) {
        const qn_jstr *more;
        qn_jbuf b = { .vm = x->vm };
        if (!qn_jparse_name(x, &more)) return false;
        if (!qn_jbuf_str(&b, *out) || !qn_jbuf_lit(&b, ".") || !qn_jbuf_str(&b, more) || !(*out = qn_jbuf_done(&b))) return false;
    }
    return true;
}

qn_jnode *qn_jparse_filters(qn_jparser *x, qn_jnode *value, bool inline_first)
{
    while (inline_first || x->t->type == QN_JT_PIPE) {
        if (!inline_first) x->t++;
        inline_first = false;
        qn_jnode *n = qn_jnode_new(x, QN_JN_FILTER, x->t->line);
        if (!n || !dotted_name(x, &n->name)) return NULL;
        n->a = value;
        n->fn = qn_jfilter_find(n->name);
        if (x->t->type == QN_JT_LPAREN && !arguments(x, n)) return NULL;
        value = n;
    }
    return value;
}

static bool begins_operand(const qn_jparser *x)
{
    switch (x->t->type) {
    case QN_JT_NAME: return !qn_jparse_is_word(x, "else") && !qn_jparse_is_word(x, "or") && !qn_jparse_is_word(x, "and");
    case QN_JT_STRING:
    case QN_JT_NUMBER:
    case QN_JT_LPAREN:
    case QN_JT_LBRACKET:
    case QN_JT_LBRACE: return true;
    default: return false;
    }
}

static qn_jnode *test(qn_jparser *x, qn_jnode *value)
{
    qn_jnode *n = qn_jnode_new(x, QN_JN_TEST, x->t++->line), *no = NULL;
    if (!n) return NULL;
    n->a = value;
    if (qn_jparse_skip_word(x, "not") && !(no = qn_jnode_new(x, QN_JN_NOT, n->line))) return NULL;
    if (!dotted_name(x, &n->name)) return NULL;
    n->fn = qn_jtest_find(n->name);
    if (x->t->type == QN_JT_LPAREN) {
        if (!arguments(x, n)) return NULL;
    } else if (begins_operand(x)) {
        if (qn_jparse_is_word(x, "is")) {
            qn_jparse_fail(x, "You cannot chain multiple tests with is");
            return NULL;
        }
        if (!qn_jnode_add(x, &n->kid, postfix(x, primary(x, 0)))) return NULL;
    }
    if (!no) return n;
    no->a = n;
    return no;
}

static qn_jnode *filter_expr(qn_jparser *x, qn_jnode *n)
{
    while (n) {
        if (x->t->type == QN_JT_PIPE) n = qn_jparse_filters(x, n, false);
        else if (qn_jparse_is_word(x, "is")) n = test(x, n);
        else if (x->t->type == QN_JT_LPAREN) n = call(x, n);
        else break;
    }
    return n;
}

/* ---- operators ---- */

static qn_jnode *unary(qn_jparser *x, bool with_filter)
{
    const qn_jtoken *t = x->t;
    qn_jnode *n;
    if (t->type == QN_JT_SUB || t->type == QN_JT_ADD) {
        if (!qn_jparse_enter(x)) return NULL;
        x->t++;
        n = qn_jnode_new(x, QN_JN_UNARY, t->line);
        if (!n) return NULL;
        n->op = t->type == QN_JT_SUB ? '-' : '+';
        if (!(n->a = unary(x, false))) return NULL;
        x->depth--;
    } else {
        n = primary(x, 0);
    }
    n = postfix(x, n);
    return with_filter ? filter_expr(x, n) : n;
}

/* Levels of binary operators, from loose to tight. A comparison collects its chain, ~ its operands. */
enum { LEVEL_OR, LEVEL_AND, LEVEL_NOT, LEVEL_COMPARE, LEVEL_SUM, LEVEL_CONCAT, LEVEL_PRODUCT, LEVEL_POWER, LEVEL_UNARY };

static qn_jnode *binary(qn_jparser *x, int level);

static int compare_op(qn_jparser *x)
{
    const qn_jtok t = x->t->type;
    if (t >= QN_JT_EQ && t <= QN_JT_GE) {
        x->t++;
        return QN_JOP_EQ + (int)(t - QN_JT_EQ);
    }
    if (qn_jparse_skip_word(x, "in")) return QN_JOP_IN;
    if (qn_jparse_is_word(x, "not") && x->t[1].type == QN_JT_NAME && qn_js_is(x->t[1].val.s, "in")) {
        x->t += 2;
        return QN_JOP_NOTIN;
    }
    return -1;
}

static qn_jnode *compare(qn_jparser *x)
{
    const int32_t line = x->t->line;
    qn_jnode *n = binary(x, LEVEL_SUM), *chain = NULL;
    for (int op; n && (op = compare_op(x)) >= 0;) {
        if (!chain) {
            chain = qn_jnode_new(x, QN_JN_COMPARE, line);
            if (!chain) return NULL;
            chain->a = n;
        }
        qn_jnode *operand = qn_jnode_new(x, QN_JN_OPERAND, x->t->line);
        if (!operand || !(operand->a = binary(x, LEVEL_SUM))) return NULL;
        operand->op = (uint8_t)op;
        if (!qn_jnode_add(x, &chain->kid, operand)) return NULL;
    }
    return chain ? chain : n;
}

static qn_jnode *concat(qn_jparser *x)
{
    qn_jnode *n = binary(x, LEVEL_PRODUCT), *chain = NULL;
    while (n && qn_jparse_skip(x, QN_JT_TILDE)) {
        if (!chain) {
            chain = qn_jnode_new(x, QN_JN_CONCAT, n->line);
            if (!chain || !qn_jnode_add(x, &chain->kid, n)) return NULL;
        }
        if (!qn_jnode_add(x, &chain->kid, binary(x, LEVEL_PRODUCT))) return NULL;
    }
    return chain ? chain : n;
}

/* Which operator of a level that goes from left to right stands here: a node kind and its op. */
static bool left_op(qn_jparser *x, int level, int *kind, int *op)
{
    *kind = QN_JN_BINARY;
    *op = 0;
    const qn_jtok t = x->t->type;
    switch (level) {
    case LEVEL_OR: *kind = QN_JN_OR; return qn_jparse_skip_word(x, "or");
    case LEVEL_AND: *kind = QN_JN_AND; return qn_jparse_skip_word(x, "and");
    case LEVEL_SUM:
        if (t != QN_JT_ADD && t != QN_JT_SUB) return false;
        *op = t == QN_JT_ADD ? QN_JOP_ADD : QN_JOP_SUB;
        break;
    case LEVEL_PRODUCT:
        if (t < QN_JT_MUL || t > QN_JT_MOD) return false;
        *op = QN_JOP_MUL + (int)(t - QN_JT_MUL);
        break;
    default:
        if (t != QN_JT_POW) return false;
        *op = QN_JOP_POW;
        break;
    }
    x->t++;
    return true;
}

static qn_jnode *left_chain(qn_jparser *x, int level)
{
    const int32_t line = x->t->line;
    qn_jnode *n = binary(x, level + 1);
    for (int kind, op; n && left_op(x, level, &kind, &op);) {
        qn_jnode *more = qn_jnode_new(x, kind, line);
        if (!more) return NULL;
        more->op = (uint8_t)op;
        more->a = n;
        more->b = binary(x, level + 1);
        if (!more->b) return NULL;
        n = more;
    }
    return n;
}

static qn_jnode *not_expr(qn_jparser *x)
{
    const int32_t line = x->t->line;
    if (!qn_jparse_skip_word(x, "not")) return compare(x);
    if (!qn_jparse_enter(x)) return NULL;
    qn_jnode *n = qn_jnode_new(x, QN_JN_NOT, line);
    if (!n || !(n->a = not_expr(x))) return NULL;
    x->depth--;
    return n;
}

static qn_jnode *binary(qn_jparser *x, int level)
{
    switch (level) {
    case LEVEL_NOT: return not_expr(x);
    case LEVEL_CONCAT: return concat(x);
    case LEVEL_UNARY: return unary(x, true);
    default: return left_chain(x, level);
    }
}

qn_jnode *qn_jparse_expr(qn_jparser *x, bool with_cond)
{
    if (!qn_jparse_enter(x)) return NULL;
    qn_jnode *n = binary(x, LEVEL_OR);
    while (n && with_cond && qn_jparse_skip_word(x, "if")) {
        qn_jnode *cond = qn_jnode_new(x, QN_JN_COND, n->line);
        if (!cond) return NULL;
        cond->b = n;
        if (!(cond->a = binary(x, LEVEL_OR))) return NULL;
        if (qn_jparse_skip_word(x, "else") && !(cond->c = qn_jparse_expr(x, true))) return NULL;
        n = cond;
    }
    x->depth--;
    return n;
}

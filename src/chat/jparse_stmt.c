/* Statements of Jinja. */
#include "src/chat/jparse.h"

#include <string.h>

static bool statements(qn_jparser *x, const char *const *ends, qn_jlistn *out);

/* ---- targets ---- */

static bool set_target(qn_jparser *x, qn_jnode *n, int ctx)
{
    if (n->kind == QN_JN_NSREF) return true;
    if (n->kind == QN_JN_NAME) {
        n->ctx = (uint8_t)ctx;
        return true;
    }
    if (n->kind != QN_JN_TUPLE) return qn_jparse_fail(x, "can't assign to this expression");
    if (!qn_jparse_enter(x)) return false;
    for (size_t i = 0; i < n->kid.n; i++)
        if (!set_target(x, n->kid.v[i], ctx)) return false;
    x->depth--;
    return true;
}

static qn_jnode *target(qn_jparser *x, int flags, const char *end_word, int ctx)
{
    qn_jnode *n = qn_jparse_tuple(x, QN_JP_SIMPLE | flags, end_word);
    return n && set_target(x, n, ctx) ? n : NULL;
}

static qn_jnode *name_target(qn_jparser *x, int ctx)
{
    qn_jnode *n = qn_jnode_new(x, QN_JN_NAME, x->t->line);
    if (!n || !qn_jparse_name(x, &n->name)) return NULL;
    static const char *const fixed[] = { "true", "false", "none", "True", "False", "None" };
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (qn_js_is(n->name, fixed[i])) return qn_jparse_fail(x, "can't assign to '%s'", fixed[i]), NULL;
    n->ctx = (uint8_t)ctx;
    return n;
}

/* ---- bodies ---- */

static bool at_end_word(const qn_jparser *x, const char *const *ends)
{
    for (; ends && *ends; ends++)
        if (qn_jparse_is_word(x, *ends)) return true;
    return false;
}

/* From the "%}" of a statement to the word that ends its body, which stays the current token. */
static bool body(qn_jparser *x, const char *const *ends, qn_jlistn *out)
{
    qn_jparse_skip(x, QN_JT_COLON);
    if (!qn_jparse_expect(x, QN_JT_BLOCK_END) || !statements(x, ends, out)) return false;
    if (x->t->type == QN_JT_EOF)
        return qn_jparse_fail(x, "Unexpected end of template. Jinja was looking for the following tags: '%s'.", *ends);
    return true;
}

static bool body_to(qn_jparser *x, const char *end, qn_jlistn *out)
{
    const char *const ends[] = { end, NULL };
    if (!body(x, ends, out)) return false;
    x->t++;
    return true;
}

/* ---- statements: the current token is behind the tag's word ---- */

static bool parse_for(qn_jparser *x, qn_jnode *n)
{
    static const char *const ends[] = { "endfor", "else", NULL };
    if (!(n->a = target(x, 0, "in", QN_JCTX_STORE))) return false;
    if (!qn_jparse_skip_word(x, "in")) return qn_jparse_fail(x, "expected token 'in', got '%s'", qn_jtok_name(x->t->type));
    if (!(n->b = qn_jparse_tuple(x, QN_JP_NO_COND, "recursive"))) return false;
    if (qn_jparse_skip_word(x, "if") && !(n->c = qn_jparse_expr(x, true))) return false;
    n->flag = qn_jparse_skip_word(x, "recursive");
    if (!body(x, ends, &n->kid)) return false;
    if (qn_jparse_skip_word(x, "else")) {
        if (!body_to(x, "endfor", &n->alt)) return false;
        n->ctx = 1; /* there is an else, even an empty one */
        return true;
    }
    x->t++;
    return true;
}

static bool parse_if(qn_jparser *x, qn_jnode *n)
{
    static const char *const ends[] = { "elif", "else", "endif", NULL };
    qn_jnode *branch = n;
    for (;;) {
        if (!(branch->a = qn_jparse_tuple(x, QN_JP_NO_COND, NULL)) || !body(x, ends, &branch->kid)) return false;
        if (qn_jparse_skip_word(x, "elif")) {
            branch = qn_jnode_new(x, QN_JN_IF, x->t->line);
            if (!qn_jnode_add(x, &n->more, branch)) return false;
            continue;
        }
        if (qn_jparse_skip_word(x, "else")) return body_to(x, "endif", &n->alt);
        x->t++;
        return true;
    }
}

static bool parse_set(qn_jparser *x, qn_jnode *n)
{
    if (!(n->a = target(x, QN_JP_NAMESPACE, NULL, QN_JCTX_STORE))) return false;
    if (qn_jparse_skip(x, QN_JT_ASSIGN)) return (n->b = qn_jparse_tuple(x, 0, NULL));
    n->kind = QN_JN_SETBLOCK;
    if (x->t->type == QN_JT_PIPE && !(n->b = qn_jparse_filters(x, NULL, false))) return false;
    return body_to(x, "endset", &n->kid);
}

static bool parse_with(qn_jparser *x, qn_jnode *n)
{
    while (x->t->type != QN_JT_BLOCK_END) {
        if (n->more.n && !qn_jparse_expect(x, QN_JT_COMMA)) return false;
        if (!qn_jnode_add(x, &n->more, target(x, 0, NULL, QN_JCTX_PARAM)) || !qn_jparse_expect(x, QN_JT_ASSIGN)) return false;
        if (!qn_jnode_add(x, &n->alt, qn_jparse_expr(x, true))) return false;
    }
    return body_to(x, "endwith", &n->kid);
}

static bool signature(qn_jparser *x, qn_jnode *n)
{
    if (!qn_jparse_expect(x, QN_JT_LPAREN)) return false;
    while (x->t->type != QN_JT_RPAREN) {
        if (n->more.n && !qn_jparse_expect(x, QN_JT_COMMA)) return false;
        if (!qn_jnode_add(x, &n->more, name_target(x, QN_JCTX_PARAM))) return false;
        if (qn_jparse_skip(x, QN_JT_ASSIGN)) {
            if (!qn_jnode_add(x, &n->alt, qn_jparse_expr(x, true))) return false;
        } else if (n->alt.n) {
            return qn_jparse_fail(x, "non-default argument follows default argument");
        }
    }
    return qn_jparse_expect(x, QN_JT_RPAREN);
}

static bool parse_macro(qn_jparser *x, qn_jnode *n)
{
    qn_jnode *name = name_target(x, QN_JCTX_STORE);
    if (!name) return false;
    n->name = name->name;
    return signature(x, n) && body_to(x, "endmacro", &n->kid);
}

static bool parse_call(qn_jparser *x, qn_jnode *n)
{
    if (x->t->type == QN_JT_LPAREN && !signature(x, n)) return false;
    if (!(n->a = qn_jparse_expr(x, true))) return false;
    if (n->a->kind != QN_JN_CALL) return qn_jparse_fail(x, "expected call");
    return body_to(x, "endcall", &n->kid);
}

static bool parse_generation(qn_jparser *x, qn_jnode *n)
{
    return body_to(x, "endgeneration", &n->kid);
}

static bool parse_filter(qn_jparser *x, qn_jnode *n)
{
    return (n->b = qn_jparse_filters(x, NULL, true)) && body_to(x, "endfilter", &n->kid);
}

static bool parse_block(qn_jparser *x, qn_jnode *n)
{
    if (!qn_jparse_name(x, &n->name)) return false;
    n->flag = qn_jparse_skip_word(x, "scoped");
    const bool required = qn_jparse_skip_word(x, "required");
    if (!body_to(x, "endblock", &n->kid)) return false;
    if (required) return qn_jparse_fail(x, "required blocks are not supported");
    if (x->t->type == QN_JT_NAME && qn_js_eq(x->t->val.s, n->name)) x->t++;
    return true;
}

static bool parse_autoescape(qn_jparser *x, qn_jnode *n)
{
    return (n->a = qn_jparse_expr(x, true)) && body_to(x, "endautoescape", &n->kid);
}

static bool parse_print(qn_jparser *x, qn_jnode *n)
{
    while (x->t->type != QN_JT_BLOCK_END) {
        if (n->kid.n && !qn_jparse_expect(x, QN_JT_COMMA)) return false;
        if (!qn_jnode_add(x, &n->kid, qn_jparse_expr(x, true))) return false;
    }
    return true;
}

static bool parse_nothing(qn_jparser *x, qn_jnode *n)
{
    (void)x, (void)n;
    return true;
}

/* There is no loader: what includes another template fails when it is reached. What it would define is not known; skip to its end. */
static bool parse_loader(qn_jparser *x, qn_jnode *n)
{
    n->val = x->t[-1].val;
    while (x->t->type != QN_JT_BLOCK_END && x->t->type != QN_JT_EOF) x->t++;
    return true;
}

static const struct {
    const char *word;
    uint8_t kind;
    bool (*parse)(qn_jparser *x, qn_jnode *n);
} tags[] = {
    { "for", QN_JN_FOR, parse_for },
    { "if", QN_JN_IF, parse_if },
    { "set", QN_JN_SET, parse_set },
    { "with", QN_JN_WITH, parse_with },
    { "macro", QN_JN_MACRO, parse_macro },
    { "call", QN_JN_CALLBLOCK, parse_call },
    { "generation", QN_JN_CALLBLOCK, parse_generation },
    { "filter", QN_JN_FILTERBLOCK, parse_filter },
    { "block", QN_JN_BLOCK, parse_block },
    { "autoescape", QN_JN_AUTOESCAPE, parse_autoescape },
    { "print", QN_JN_OUTPUT, parse_print },
    { "break", QN_JN_BREAK, parse_nothing },
    { "continue", QN_JN_CONTINUE, parse_nothing },
    { "include", QN_JN_LOADER, parse_loader },
    { "import", QN_JN_LOADER, parse_loader },
    { "from", QN_JN_LOADER, parse_loader },
    { "extends", QN_JN_LOADER, parse_loader },
};

static qn_jnode *statement(qn_jparser *x)
{
    if (x->t->type != QN_JT_NAME) {
        qn_jparse_fail(x, "tag name expected");
        return NULL;
    }
    const qn_jtoken *t = x->t;
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        if (!qn_js_is(t->val.s, tags[i].word)) continue;
        x->t++;
        qn_jnode *n = qn_jnode_new(x, tags[i].kind, t->line);
        return n && tags[i].parse(x, n) ? n : NULL;
    }
    qn_jparse_fail(x, "Encountered unknown tag '%.*s'.", QN_STR_ARG(((qn_str){ t->val.s->p, t->val.s->n })));
    return NULL;
}

static bool output(qn_jparser *x, qn_jlistn *out)
{
    qn_jnode *n = qn_jnode_new(x, QN_JN_OUTPUT, x->t->line);
    if (!n || !(n->a = qn_jparse_tuple(x, 0, NULL))) return false;
    return qn_jparse_expect(x, QN_JT_VAR_END) && qn_jnode_add(x, out, n);
}

static bool text(qn_jparser *x, qn_jlistn *out)
{
    qn_jnode *n = qn_jnode_new(x, QN_JN_TEXT, x->t->line);
    if (!n) return false;
    n->val = x->t[-1].val;
    return qn_jnode_add(x, out, n);
}

static bool statements(qn_jparser *x, const char *const *ends, qn_jlistn *out)
{
    if (!qn_jparse_enter(x)) return false;
    while (x->t->type != QN_JT_EOF) {
        if (qn_jparse_skip(x, QN_JT_DATA)) {
            if (!text(x, out)) return false;
        } else if (qn_jparse_skip(x, QN_JT_VAR_BEGIN)) {
            if (!output(x, out)) return false;
        } else if (qn_jparse_expect(x, QN_JT_BLOCK_BEGIN)) {
            if (at_end_word(x, ends)) break;
            if (!qn_jnode_add(x, out, statement(x)) || !qn_jparse_expect(x, QN_JT_BLOCK_END)) return false;
        } else {
            return false;
        }
    }
    x->depth--;
    return true;
}

bool qn_jparse(qn_jvm *vm, const qn_jtokens *tokens, qn_jnode **root)
{
    qn_jparser x = { .vm = vm, .t = tokens->t };
    *root = qn_jnode_new(&x, QN_JN_ROOT, 1);
    return *root && statements(&x, NULL, &(*root)->kid);
}

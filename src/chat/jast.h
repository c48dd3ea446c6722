/* A compiled template: tokens, the tree, and which slot each name lives in. */
#ifndef QN_CHAT_JAST_H
#define QN_CHAT_JAST_H

#include "src/chat/jvm.h"

/* ---- tokens ---- */

typedef enum qn_jtok {
    QN_JT_EOF = 0, QN_JT_DATA, QN_JT_BLOCK_BEGIN, QN_JT_BLOCK_END, QN_JT_VAR_BEGIN, QN_JT_VAR_END,
    QN_JT_NAME, QN_JT_STRING, QN_JT_NUMBER,
    QN_JT_ADD, QN_JT_SUB, QN_JT_MUL, QN_JT_DIV, QN_JT_FLOORDIV, QN_JT_MOD, QN_JT_POW, QN_JT_TILDE,
    QN_JT_EQ, QN_JT_NE, QN_JT_LT, QN_JT_LE, QN_JT_GT, QN_JT_GE, QN_JT_ASSIGN,
    QN_JT_LPAREN, QN_JT_RPAREN, QN_JT_LBRACKET, QN_JT_RBRACKET, QN_JT_LBRACE, QN_JT_RBRACE,
    QN_JT_DOT, QN_JT_COLON, QN_JT_PIPE, QN_JT_COMMA, QN_JT_SEMICOLON,
} qn_jtok;

typedef struct qn_jtoken {
    qn_jtok type;
    int32_t line;
    qn_jval val;         /* the text of names and data, the value of strings and numbers          */
} qn_jtoken;

typedef struct qn_jtokens {
    qn_jtoken *t;        /* [n], the last is QN_JT_EOF                                           */
    size_t n, cap;
} qn_jtokens;

/** Cut source text into tokens. Failures are those of vm. */
bool qn_jlex(qn_jvm *vm, qn_str source, qn_jtokens *out);
/** What a token is called in a sentence. */
const char *qn_jtok_name(qn_jtok t);

/* ---- the tree ---- */

/*                      a          b          c          kid          more          alt            other */
typedef enum qn_jkind {
    QN_JN_CONST = 0, /*                                                                            val */
    QN_JN_NAME,      /*                                                                            name, hops, slot */
    QN_JN_NSREF,     /*                                                                            name.attr, hops, slot */
    QN_JN_LIST,      /*                                 items */
    QN_JN_TUPLE,     /*                                 items */
    QN_JN_DICT,      /*                                 key, value, ... */
    QN_JN_BINARY,    /* left       right                                                           op */
    QN_JN_UNARY,     /* operand                                                                    op '-' '+' */
    QN_JN_NOT,       /* operand */
    QN_JN_AND,       /* left       right */
    QN_JN_OR,        /* left       right */
    QN_JN_CONCAT,    /*                                 operands */
    QN_JN_COMPARE,   /* first                           QN_JN_OPERAND ... */
    QN_JN_OPERAND,   /* operand                                                                    op */
    QN_JN_COND,      /* test       then       else|0 */
    QN_JN_ATTR,      /* object                                                                     name */
    QN_JN_ITEM,      /* object     key */
    QN_JN_SLICE,     /* from|0     to|0       step|0 */
    QN_JN_CALL,      /* callee                          arguments */
    QN_JN_FILTER,    /* value|0                         arguments                                  name, fn|0 */
    QN_JN_TEST,      /* value                           arguments                                  name, fn|0 */
    QN_JN_KEYWORD,   /* value                                                                      name */
    QN_JN_STAR,      /* value */
    QN_JN_STARSTAR,  /* value */
    QN_JN_TEXT,      /*                                                                            val.s */
    QN_JN_OUTPUT,    /* value|0                         values of {% print a, b %} */
    QN_JN_FOR,       /* target     items      filter|0  body                       else-body       flag recursive, op extended */
    QN_JN_IF,        /* test                            body         elif ...      else-body */
    QN_JN_SET,       /* target     value */
    QN_JN_SETBLOCK,  /* target     filter|0             body */
    QN_JN_WITH,      /*                                 body         targets       values */
    QN_JN_MACRO,     /*                                 body         parameters    defaults        name, hops, slot */
    QN_JN_CALLBLOCK, /* call                            body         parameters    defaults        call 0: a generation block */
    QN_JN_FILTERBLOCK, /*          filter               body */
    QN_JN_BLOCK,     /*                                 body                                       name, flag scoped */
    QN_JN_AUTOESCAPE, /* value                          body */
    QN_JN_BREAK,
    QN_JN_CONTINUE,
    QN_JN_LOADER,    /* include, import, extends: fails when reached                               val.s */
    QN_JN_ROOT,      /*                                 body */
} qn_jkind;

enum { QN_JCTX_LOAD = 0, QN_JCTX_STORE, QN_JCTX_PARAM };

/* What happens to a slot when its scope is entered. */
enum { QN_JLOAD_UNDEFINED = 0, QN_JLOAD_PARAM, QN_JLOAD_RESOLVE, QN_JLOAD_ALIAS };

typedef struct qn_jsym {
    const qn_jstr *name;
    uint8_t load;
    bool stored;
    int32_t hops, slot;  /* QN_JLOAD_ALIAS: where the outer variable lives, counted from this scope */
} qn_jsym;

/* The variables of one scope; its slots are the symbols in order. */
typedef struct qn_jscope {
    struct qn_jscope *parent;
    qn_jsym *sym;
    size_t n, cap;
    bool toplevel;       /* what is set here is seen by blocks too                                */
} qn_jscope;

typedef struct qn_jlistn {
    qn_jnode **v;
    size_t n, cap;
} qn_jlistn;

struct qn_jnode {
    uint8_t kind;        /* qn_jkind                                                            */
    uint8_t op, ctx;
    bool flag;
    int32_t line;
    int32_t hops, slot;  /* of a variable: scopes outwards, place there                           */
    qn_jval val;
    const qn_jstr *name, *attr;
    qn_jnode *a, *b, *c;
    qn_jlistn kid, more, alt;
    qn_jscope *scope, *scope_else, *scope_test;
    const qn_jfn *fn;
    int32_t slot_special[3]; /* QN_JN_MACRO, QN_JN_CALLBLOCK: of caller, kwargs, varargs, or -1     */
};

/** Parse tokens into a tree. */
bool qn_jparse(qn_jvm *vm, const qn_jtokens *tokens, qn_jnode **root);
/** Give every name its slot, as Jinja's compiler does. */
bool qn_jscope_resolve(qn_jvm *vm, qn_jnode *root);
/** A failure of compiling, with the line: QN_ERR_FORMAT. Returns false. */
bool qn_jcompile_fail(qn_jvm *vm, int32_t line, const char *fmt, ...) QN_PRINTF(3, 4);

/* ---- running ---- */

struct qn_jenv {
    qn_jenv *parent;
    qn_jval *slot;
    const qn_jscope *scope;
};

typedef enum qn_jrun {
    QN_JRUN_FAIL = 0, QN_JRUN_ON, QN_JRUN_BREAK, QN_JRUN_CONTINUE,
} qn_jrun;

bool qn_jeval(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval *out);
bool qn_jeval_args(qn_jvm *vm, const qn_jnode *call, qn_jenv *env, qn_jargs *args);
/** Run a filter node on a value that is there already (filter blocks), its inner filters first. */
bool qn_jeval_filter_on(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval value, qn_jval *out);
qn_jrun qn_jexec(qn_jvm *vm, const qn_jlistn *body, qn_jenv *env);
/** A new environment for a scope; its slots are loaded by qn_jenv_load. */
qn_jenv *qn_jenv_new(qn_jvm *vm, const qn_jscope *scope, qn_jenv *parent);
bool qn_jenv_load(qn_jvm *vm, qn_jenv *env);
bool qn_jexec_assign(qn_jvm *vm, const qn_jnode *target, qn_jenv *env, qn_jval v);
/** The body of a macro or call block, with what was printed as text. */
qn_jrun qn_jexec_captured(qn_jvm *vm, const qn_jlistn *body, qn_jenv *env, qn_jval *out);
qn_jrun qn_jexec_loop(qn_jvm *vm, const qn_jnode *n, qn_jenv *env, qn_jval items, int32_t depth);

#endif

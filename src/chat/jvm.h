/* The values of a chat template, and the state of one render.
 *
 * Everything a render makes lives in one arena that is freed at once, so nothing here owns anything and values are copied freely. Lists,
 * tuples, dicts and strings never change once they are visible to the template: the sandbox refuses every method that would change one.
 *
 * A function that can fail returns false after qn_jvm_fail; the first failure stays. */
#ifndef QN_CHAT_JVM_H
#define QN_CHAT_JVM_H

#include "src/base/err.h"
#include "src/chat/jarena.h"

typedef struct qn_jvm qn_jvm;
typedef struct qn_jnode qn_jnode;
typedef struct qn_jenv qn_jenv;

/* ---- values ---- */

typedef enum qn_jtype {
    QN_J_MISSING = 0, /* a slot or argument that holds nothing; never seen by a template          */
    QN_J_UNDEF,       /* undefined: .undef says why                                              */
    QN_J_NONE,
    QN_J_BOOL,
    QN_J_INT,
    QN_J_BIG,         /* an integer beyond 64 bits: .s holds its decimal digits; no arithmetic     */
    QN_J_FLOAT,
    QN_J_STR,
    QN_J_LIST,
    QN_J_TUPLE,
    QN_J_DICT,
    QN_J_VIEW,        /* dict_keys, dict_values, dict_items: .view                               */
    QN_J_RANGE,
    QN_J_GEN,         /* a generator or iterator: can be walked once                             */
    QN_J_SPACE,       /* namespace(): .d, the only thing a template can write to                 */
    QN_J_MACRO,
    QN_J_NATIVE,      /* a global function or bound method                                       */
    QN_J_LOOP,
    QN_J_CYCLER,
    QN_J_JOINER,      /* .cycler: l holds the separator, at says whether it was called            */
    QN_J_BLOCKS,      /* `self`                                                                  */
    QN_J_BLOCK,       /* self.name                                                               */
} qn_jtype;

typedef struct qn_jstr qn_jstr;
typedef struct qn_jlist qn_jlist;
typedef struct qn_jdict qn_jdict;
typedef struct qn_jundef qn_jundef;
typedef struct qn_jview qn_jview;
typedef struct qn_jrange qn_jrange;
typedef struct qn_jgen qn_jgen;
typedef struct qn_jmacro qn_jmacro;
typedef struct qn_jbound qn_jbound;
typedef struct qn_jloop qn_jloop;
typedef struct qn_jcycler qn_jcycler;
typedef struct qn_jfn qn_jfn;

typedef struct qn_jval {
    uint8_t type;   /* qn_jtype                                                                   */
    bool markup;    /* QN_J_STR: marked safe; operations escape what is added to it                */
    bool group;     /* QN_J_TUPLE: made by groupby, has .grouper and .list                         */
    union {
        bool b;
        int64_t i;
        double f;
        const qn_jstr *s;
        qn_jlist *l;
        qn_jdict *d;
        const qn_jundef *undef;
        qn_jview *view;
        const qn_jrange *range;
        qn_jgen *gen;
        qn_jmacro *macro;
        qn_jbound *bound;
        qn_jloop *loop;
        qn_jcycler *cycler;
        const qn_jnode *block;
    };
} qn_jval;

/* Text with its origin. plain: bytes that came from the conversation. */
enum { QN_J_TEMPLATE = 0, QN_J_PLAIN = 1, QN_J_MIXED = 2 };

/* Bytes behind the end of a string that nobody uses yet, shared by the strings of one chain of concatenations. */
typedef struct qn_jtail {
    char *end, *limit;
} qn_jtail;

struct qn_jstr {
    const char *p;        /* UTF-8; a byte that is not counts as a character of its own           */
    size_t n;             /* bytes                                                              */
    size_t n_chars;       /* or SIZE_MAX: not counted yet                                       */
    const qn_range *run;  /* QN_J_MIXED: [n_run] plain ranges, ascending and apart                */
    size_t n_run;
    qn_jtail *tail;
    uint8_t mark;
};

struct qn_jlist {
    qn_jval *v;
    size_t n, cap;
};

/* Pairs in the order they came; `index` is an open hash table of positions + 1, absent below 9 pairs. */
struct qn_jdict {
    qn_jval *key, *val;
    uint64_t *hash;
    size_t n, cap;
    uint32_t *index;
    size_t n_index;
};

enum { QN_JU_NAME, QN_JU_ATTR, QN_JU_HINT, QN_JU_UNSAFE };
struct qn_jundef {
    uint8_t why;
    qn_jval obj;          /* QN_JU_ATTR, QN_JU_UNSAFE: what was asked                             */
    qn_jval key;          /* and for what; QN_JU_NAME: the name                                  */
    const char *hint;
};

struct qn_jview {
    qn_jdict *d;
    uint8_t what;         /* 0 keys, 1 values, 2 items                                          */
};

struct qn_jrange {
    int64_t start, stop, step, n;
};

struct qn_jgen {
    qn_jlist *l;
    size_t at;
    const char *type;     /* "generator"                                                        */
};

struct qn_jcycler {
    qn_jlist *l;
    size_t at;
};

/* Items by number: what a `for` walks. */
typedef struct qn_jseq {
    const qn_jlist *l;    /* or NULL: the range                                                 */
    const qn_jrange *range;
    size_t n;
} qn_jseq;

/* A `for` under way. Items are drawn when they are needed: a filter may look at what the body has set. */
struct qn_jloop {
    qn_jseq seq;
    size_t at;            /* next item of seq                                                   */
    qn_jlist ahead;       /* drawn, not yet walked, from i_ahead on                               */
    size_t i_ahead;
    int64_t index0, length; /* length: -1 when not counted yet                                     */
    int32_t depth0;
    qn_jval before, current; /* QN_J_MISSING: none                                               */
    qn_jval changed;      /* tuple of the last loop.changed()                                    */
    const qn_jnode *node;
    qn_jenv *env, *env_test;
};

/* Arguments of a call. */
typedef struct qn_jargs {
    qn_jval *pos;
    const qn_jstr **name;
    qn_jval *kw;
    size_t n_pos, n_kw;
} qn_jargs;

enum { QN_JARG_MAX = 8 };
/* A call of a native function: a[] are its parameters by position, QN_J_MISSING where not given. */
typedef struct qn_jcall {
    qn_jval a[QN_JARG_MAX];
    const qn_jargs *raw;  /* for functions that take any arguments                               */
    const qn_jfn *fn;
} qn_jcall;

/* A native function. `params` is "value,width?,first?": names in order, optional ones with '?'; a parameter without a name takes no
 * keyword; "*" takes everything as it comes (in raw). */
struct qn_jfn {
    const char *name;
    const char *params;
    bool (*run)(qn_jvm *vm, qn_jcall *c, qn_jval *out);
};

struct qn_jbound {
    const qn_jfn *fn;
    qn_jval self;         /* QN_J_MISSING: a global function                                     */
};

struct qn_jmacro {
    const qn_jnode *node; /* macro or call block                                                */
    qn_jenv *env;         /* where it was defined                                               */
    bool autoescape;
};

/* ---- the state of one render ---- */

struct qn_jvm {
    qn_jarena *mem;
    qn_err *err;
    qn_status status;     /* QN_OK, or the first failure                                         */
    uint64_t n_steps;     /* left                                                               */
    size_t max_bytes;     /* of one string                                                      */
    int32_t depth, max_depth; /* recursions of the evaluator under way                            */
    int32_t n_calls, max_calls;
    int32_t line;         /* of the template, where the evaluator is                             */
    bool autoescape;
    int64_t now;
    uint64_t seed;        /* of hashes: an address, so that a request cannot aim at collisions     */
    qn_jdict *context;    /* given variables                                                    */
    qn_jdict *vars;       /* set at the top level of the template                                */
    struct qn_jbuf *out;
    const qn_jnode *root;
};

/** Record a failure in Python's words (QN_ERR_TEMPLATE, with the line in front) or that of a budget. Returns false. */
bool qn_jvm_fail(qn_jvm *vm, const char *fmt, ...) QN_PRINTF(2, 3);
bool qn_jvm_stop(qn_jvm *vm, qn_status status, const char *fmt, ...) QN_PRINTF(3, 4);
/** The arena refused. Returns false. */
bool qn_jvm_no_memory(qn_jvm *vm);
/** Take n steps from the budget. */
bool qn_jvm_charge(qn_jvm *vm, uint64_t n);
/** One level deeper; leave with qn_jvm_leave when it returned true. */
bool qn_jvm_enter(qn_jvm *vm);
static inline void qn_jvm_leave(qn_jvm *vm)
{
    vm->depth--;
}
/** The same for a value inside a value: its recursion takes more of the C stack, so it counts for several levels. */
bool qn_jvm_enter_data(qn_jvm *vm);
void qn_jvm_leave_data(qn_jvm *vm);
/** Zeroed memory for n items of `size` bytes, or NULL after qn_jvm_no_memory. */
void *qn_jvm_new(qn_jvm *vm, size_t n, size_t size);

/* ---- making values ---- */

#define QN_JV(t, member, x) ((qn_jval){ .type = (t), .member = (x) })
static inline qn_jval qn_jv_none(void)
{
    return (qn_jval){ .type = QN_J_NONE };
}
static inline qn_jval qn_jv_bool(bool b)
{
    return QN_JV(QN_J_BOOL, b, b);
}
static inline qn_jval qn_jv_int(int64_t i)
{
    return QN_JV(QN_J_INT, i, i);
}
static inline qn_jval qn_jv_float(double f)
{
    return QN_JV(QN_J_FLOAT, f, f);
}
static inline qn_jval qn_jv_str(const qn_jstr *s)
{
    return QN_JV(QN_J_STR, s, s);
}
static inline qn_jval qn_jv_text(const qn_jstr *s, bool markup)
{
    qn_jval v = QN_JV(QN_J_STR, s, s);
    v.markup = markup;
    return v;
}

bool qn_jv_undef_name(qn_jvm *vm, const qn_jstr *name, qn_jval *out);
bool qn_jv_undef_attr(qn_jvm *vm, int why, qn_jval obj, qn_jval key, qn_jval *out);
bool qn_jv_undef_hint(qn_jvm *vm, const char *hint, qn_jval *out);
/** Fail with the sentence of an undefined value. */
bool qn_jv_undef_fail(qn_jvm *vm, qn_jval v);

/* ---- jstr.c: strings and builders ---- */

/** A string over bytes that live as long as the render. */
qn_jstr *qn_js_over(qn_jvm *vm, const char *p, size_t n, bool plain);
/** A string of the template's own from a C string that lives as long as the render. */
qn_jstr *qn_js_lit(qn_jvm *vm, const char *text);
/** Bytes [from, to) of s, sharing them. */
const qn_jstr *qn_js_sub(qn_jvm *vm, const qn_jstr *s, size_t from, size_t to);
const qn_jstr *qn_js_concat(qn_jvm *vm, const qn_jstr *a, const qn_jstr *b);
size_t qn_js_chars(const qn_jstr *s);
bool qn_js_ascii(const qn_jstr *s);
/** Byte where character i begins, i in [0, n_chars]. */
size_t qn_js_offset(const qn_jstr *s, size_t i);
bool qn_js_eq(const qn_jstr *a, const qn_jstr *b);
bool qn_js_is(const qn_jstr *s, const char *text);
int qn_js_cmp(const qn_jstr *a, const qn_jstr *b); /* by code points */
/** First or last place of `sub` in bytes [from, to) of s, or SIZE_MAX. */
size_t qn_js_find(const qn_jstr *s, const qn_jstr *sub, size_t from, size_t to);
size_t qn_js_rfind(const qn_jstr *s, const qn_jstr *sub, size_t from, size_t to);
/** The code point at p, whose length goes to *n; a byte that begins none is itself | QN_J_BYTE. */
enum { QN_J_BYTE = 0x40000000 };
int32_t qn_js_decode(const char *p, const char *end, size_t *n);
size_t qn_js_encode(int32_t c, char out[4]);
/** Python's str.isspace for one code point. */
bool qn_js_space(int32_t c);
/** The next stretch of one origin from byte *at on: [*at, return) and *plain. */
size_t qn_js_stretch(const qn_jstr *s, size_t at, bool *plain);

/** Text under construction, with its origins. */
typedef struct qn_jbuf {
    qn_jvm *vm;
    char *p;
    size_t n, cap;
    qn_range *run;
    size_t n_run, cap_run;
} qn_jbuf;

bool qn_jbuf_add(qn_jbuf *b, const char *p, size_t n, bool plain);
bool qn_jbuf_str(qn_jbuf *b, const qn_jstr *s);
bool qn_jbuf_sub(qn_jbuf *b, const qn_jstr *s, size_t from, size_t to);
bool qn_jbuf_lit(qn_jbuf *b, const char *text);
bool qn_jbuf_char(qn_jbuf *b, int32_t c, bool plain);
bool qn_jbuf_fill(qn_jbuf *b, const qn_jstr *s, size_t n_times);
/** The finished string, which takes over the bytes; NULL after a failure. */
const qn_jstr *qn_jbuf_done(qn_jbuf *b);
bool qn_jbuf_value(qn_jbuf *b, bool markup, qn_jval *out);

/* ---- jdict.c, lists ---- */

qn_jdict *qn_jd_new(qn_jvm *vm);
/** Set a key; a key that is there keeps its place. Fails for a key that cannot be hashed. */
bool qn_jd_set(qn_jvm *vm, qn_jdict *d, qn_jval key, qn_jval val);
/** *found is NULL when the key is not there. */
bool qn_jd_get(qn_jvm *vm, const qn_jdict *d, qn_jval key, const qn_jval **found);
const qn_jval *qn_jd_get_text(qn_jvm *vm, const qn_jdict *d, const char *key);
bool qn_jv_hash(qn_jvm *vm, qn_jval v, uint64_t *out);

qn_jlist *qn_jl_new(qn_jvm *vm, size_t cap);
bool qn_jl_add(qn_jvm *vm, qn_jlist *l, qn_jval v);

/* ---- jvalue.c ---- */

const char *qn_jv_type_name(qn_jval v);
bool qn_jv_truth(qn_jvm *vm, qn_jval v);
bool qn_jv_len(qn_jvm *vm, qn_jval v, int64_t *n);
bool qn_jv_eq(qn_jvm *vm, qn_jval a, qn_jval b, bool *eq);
/** a < b; fails as Python does where the types have no order. `op` is for the sentence. */
bool qn_jv_less(qn_jvm *vm, qn_jval a, qn_jval b, const char *op, bool *less);
bool qn_jv_iterable(qn_jval v);
bool qn_jv_callable(qn_jval v);
static inline bool qn_jv_integral(qn_jval v)
{
    return v.type == QN_J_INT || v.type == QN_J_BOOL;
}
static inline int64_t qn_jv_as_int(qn_jval v)
{
    return v.type == QN_J_BOOL ? v.b : v.i;
}
static inline bool qn_jv_numeric(qn_jval v)
{
    return qn_jv_integral(v) || v.type == QN_J_FLOAT;
}
static inline double qn_jv_as_float(qn_jval v)
{
    return v.type == QN_J_FLOAT ? v.f : (double)qn_jv_as_int(v);
}
/** The items of anything iterable; a generator is used up. */
bool qn_jv_seq(qn_jvm *vm, qn_jval v, qn_jseq *out);
bool qn_jseq_at(qn_jvm *vm, const qn_jseq *q, size_t i, qn_jval *out);
bool qn_jv_list(qn_jvm *vm, qn_jval v, qn_jlist **out);
bool qn_jv_gen(qn_jvm *vm, qn_jlist *l, const char *type, qn_jval *out);
/** Stable merge sort of [n] keys with their values; `reverse` keeps equal ones in order too. */
bool qn_jv_sort(qn_jvm *vm, qn_jval *key, qn_jval *val, size_t n, bool reverse);

/* ---- jrepr.c ---- */

/** Python's str(v): strings as they are, undefined is empty. */
const qn_jstr *qn_jv_to_str(qn_jvm *vm, qn_jval v);
bool qn_jbuf_repr(qn_jbuf *b, qn_jval v);
bool qn_jbuf_repr_str(qn_jbuf *b, const qn_jstr *s, bool ascii);
bool qn_jbuf_display(qn_jbuf *b, qn_jval v);
/** HTML escaping of what is not marked safe. */
const qn_jstr *qn_jv_escape(qn_jvm *vm, qn_jval v);
/** pprint.pformat */
bool qn_jbuf_pretty(qn_jbuf *b, qn_jval v);

/* ---- jnum.c ---- */

enum { QN_JNUM_MAX = 400 };
/** Python's repr of a float. @param out [32] @return bytes */
size_t qn_jnum_repr(double f, char *out);
/** A decimal number of n bytes, "1e-5"; the host's locale does not matter. */
double qn_jnum_parse(const char *p, size_t n);
/** snprintf of one double with a point for a point, e.g. kind 'f', 'e', 'g'. @param out [QN_JNUM_MAX] @return bytes */
size_t qn_jnum_print(double f, char kind, int precision, bool alternate, char *out);
/** Python's int(text, base) and float(text); false where Python raises ValueError. */
bool qn_jnum_int(qn_jvm *vm, const qn_jstr *s, int base, qn_jval *out);
bool qn_jnum_float(const qn_jstr *s, double *out);
/** int(f): toward zero; fails for nan, infinity and beyond 64 bits. */
bool qn_jnum_trunc(qn_jvm *vm, double f, qn_jval *out);
/** Python's round(f, digits). */
double qn_jnum_round(double f, int digits);

/* ---- jops.c ---- */

enum {
    QN_JOP_ADD = 0, QN_JOP_SUB, QN_JOP_MUL, QN_JOP_DIV, QN_JOP_FLOORDIV, QN_JOP_MOD, QN_JOP_POW,
    QN_JOP_EQ, QN_JOP_NE, QN_JOP_LT, QN_JOP_LE, QN_JOP_GT, QN_JOP_GE, QN_JOP_IN, QN_JOP_NOTIN,
};
bool qn_jop_binary(qn_jvm *vm, int op, qn_jval a, qn_jval b, qn_jval *out);
bool qn_jop_compare(qn_jvm *vm, int op, qn_jval a, qn_jval b, bool *out);
bool qn_jop_unary(qn_jvm *vm, char op, qn_jval a, qn_jval *out);
bool qn_jop_slice(qn_jvm *vm, qn_jval a, qn_jval from, qn_jval to, qn_jval step, qn_jval *out);

/* ---- jattr.c ---- */

/** a.name, and a[key], as the sandbox of Jinja does. */
bool qn_jattr_get(qn_jvm *vm, qn_jval a, const qn_jstr *name, qn_jval *out);
bool qn_jattr_item(qn_jvm *vm, qn_jval a, qn_jval key, qn_jval *out);
/** Does Python's hasattr find it? *out is the attribute. */
bool qn_jattr_find(qn_jvm *vm, qn_jval a, const qn_jstr *name, bool *found, qn_jval *out);

/* ---- jcall.c ---- */

bool qn_jcall_value(qn_jvm *vm, qn_jval fn, const qn_jargs *args, qn_jval *out);
/** Bind args to fn's parameters, with `self` in front unless it is QN_J_MISSING, and run it. */
bool qn_jcall_native(qn_jvm *vm, const qn_jfn *fn, qn_jval self, const qn_jargs *args, qn_jval *out);
bool qn_jmacro_call(qn_jvm *vm, qn_jmacro *m, const qn_jargs *args, qn_jval *out);
bool qn_jloop_call(qn_jvm *vm, const qn_jloop *parent, qn_jval items, qn_jval *out);
bool qn_jloop_length(qn_jvm *vm, qn_jloop *l, int64_t *n);
/** The item after the current one; QN_J_MISSING at the end. */
bool qn_jloop_peek(qn_jvm *vm, qn_jloop *l, qn_jval *out);
bool qn_jblock_call(qn_jvm *vm, const qn_jnode *block, qn_jval *out);

/* ---- tables ---- */

const qn_jfn *qn_jfilter_find(const qn_jstr *name);
const qn_jfn *qn_jtest_find(const qn_jstr *name);
const qn_jfn *qn_jglobal_find(const qn_jstr *name);
const qn_jfn *qn_jmethod_find(qn_jval self, const qn_jstr *name);
/** Is it a method that changes its object? */
bool qn_jmethod_unsafe(qn_jval self, const qn_jstr *name);
const qn_jfn *qn_jfn_in(const qn_jfn *table, const qn_jstr *name);
bool qn_jfn_is_test(qn_jvm *vm, const qn_jfn *test, qn_jval v, const qn_jargs *args, bool *yes);
/** Arguments of native functions. */
bool qn_jarg_int(qn_jvm *vm, qn_jval v, int64_t *out);
bool qn_jarg_int_or(qn_jvm *vm, qn_jval v, int64_t otherwise, int64_t *out); /* when not given; None is refused */
const qn_jstr *qn_jarg_str(qn_jvm *vm, qn_jval v);                           /* a str or an error */
static inline bool qn_jarg_given(qn_jval v)
{
    return v.type != QN_J_MISSING;
}

/* ---- jformat.c ---- */

/** text % args */
bool qn_jformat_percent(qn_jvm *vm, qn_jval text, qn_jval args, qn_jval *out);
/** text.format(*args, **kwargs) */
bool qn_jformat_braces(qn_jvm *vm, qn_jval text, const qn_jargs *args, qn_jval *out);
/** format(v, spec) */
bool qn_jformat_spec(qn_jbuf *b, qn_jval v, const qn_jstr *spec);

/* ---- jtojson.c, jsonread.c, jstrftime.c, jcase.c ---- */

typedef struct qn_jdump {
    const qn_jstr *indent;    /* or NULL                                                          */
    const qn_jstr *item_sep, *key_sep;
    bool ensure_ascii, sort_keys;
} qn_jdump;
bool qn_jbuf_json(qn_jbuf *b, qn_jval v, const qn_jdump *how, int level);

/** Read one JSON value; strings under the top-level keys that hold the conversation are plain. `text` must outlive the render. */
bool qn_json_read(qn_jvm *vm, qn_str text, qn_jval *out);

bool qn_jbuf_strftime(qn_jbuf *b, int64_t now, const qn_jstr *format);

enum { QN_JCASE_UPPER, QN_JCASE_LOWER, QN_JCASE_TITLE, QN_JCASE_CAPITALIZE, QN_JCASE_SWAP, QN_JCASE_FOLD };
bool qn_jbuf_case(qn_jbuf *b, const qn_jstr *s, int how);

#endif

/* What the two halves of the parser share. */
#ifndef QN_CHAT_JPARSE_H
#define QN_CHAT_JPARSE_H

#include "src/chat/jast.h"

typedef struct qn_jparser {
    qn_jvm *vm;
    const qn_jtoken *t;  /* the current token                                                   */
    int32_t depth;
} qn_jparser;

qn_jnode *qn_jnode_new(qn_jparser *x, int kind, int32_t line);
bool qn_jnode_add(qn_jparser *x, qn_jlistn *l, qn_jnode *n);
bool qn_jparse_fail(qn_jparser *x, const char *fmt, ...) QN_PRINTF(2, 3);
/** Step over a token of this type if it is the current one. */
bool qn_jparse_skip(qn_jparser *x, qn_jtok type);
bool qn_jparse_skip_word(qn_jparser *x, const char *word);
bool qn_jparse_is_word(const qn_jparser *x, const char *word);
/** Step over a token that must be here. */
bool qn_jparse_expect(qn_jparser *x, qn_jtok type);
bool qn_jparse_name(qn_jparser *x, const qn_jstr **name);
/** One level deeper, false beyond the limit; every true is answered by depth-- . */
bool qn_jparse_enter(qn_jparser *x);

/** Expressions. NULL after a failure. */
enum { QN_JP_NO_COND = 1, QN_JP_SIMPLE = 2, QN_JP_PARENS = 4, QN_JP_NAMESPACE = 8 };
qn_jnode *qn_jparse_expr(qn_jparser *x, bool with_cond);
/** @param end_word  a word that ends a tuple, or NULL */
qn_jnode *qn_jparse_tuple(qn_jparser *x, int flags, const char *end_word);
/** `name` or `name(args)`, then `| name ...`, on value (NULL: filled in later). */
qn_jnode *qn_jparse_filters(qn_jparser *x, qn_jnode *value, bool inline_first);

#endif

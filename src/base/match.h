/* Several strings looked for at once in a stream of bytes: the automaton of Knuth, Morris and Pratt (1977), one a string, so that the
 * cost is linear in the bytes whatever the strings look like, and the longest open prefix is known after every byte. */
#ifndef QN_BASE_MATCH_H
#define QN_BASE_MATCH_H

#include "src/base/err.h"

typedef struct qn_match_string {
    size_t at, len;   /* in `bytes` and `fail`               */
    size_t state;     /* bytes of it that are matched now    */
} qn_match_string;

typedef struct qn_matcher {
    qn_match_string *string; /* [n] */
    int32_t n;
    uint8_t *bytes;   /* [sum of lengths]                                                           */
    size_t *fail;     /* [sum of lengths] longest border of the first i + 1 bytes of a string       */
} qn_matcher;

/** Copies the strings. `what` names them in the sentence. n may be 0. @return QN_ERR_ARG for an empty string, QN_ERR_NOMEM. */
qn_status qn_matcher_open(qn_matcher *m, const char *const *strings, int32_t n, const char *what, qn_err *err);
/** Also closes one that is all zeros. */
void qn_matcher_close(qn_matcher *m);
/** Forget the bytes fed. */
void qn_matcher_reset(qn_matcher *m);
/** Feed one byte. @return the longest string that ends in it (the first given among equals), or -1 */
int32_t qn_matcher_feed(qn_matcher *m, uint8_t byte);
/** Length of the longest beginning of a string that the bytes fed end in. A finished string is not one; what it ends in may be. */
size_t qn_matcher_open_prefix(const qn_matcher *m);

#endif

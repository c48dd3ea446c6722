/* Option structs of callers that were built with another version of quern.h. */
#ifndef QN_BASE_OPTS_H
#define QN_BASE_OPTS_H

#include "src/base/err.h"

/**
 * Copy an option struct, which begins with its size. What an older, smaller one lacks is zero: the default. What a newer, larger one has beyond
 * `n` must be zero: an option that is not known is refused, not ignored.
 * @param to    [n] bytes; its size becomes n
 * @param from  NULL: all defaults
 * @param what  "engine"
 * @return QN_ERR_ARG: the size is not set; QN_ERR_UNSUPPORTED
 */
qn_status qn_opts_take(void *to, size_t n, const void *from, const char *what, qn_err *err);

#endif

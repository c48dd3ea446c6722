/* Status and sentence: how errors travel up to the caller. */
#ifndef QN_BASE_ERR_H
#define QN_BASE_ERR_H

#include "src/quern.h"

#if defined(__GNUC__)
#define QN_PRINTF(fmt_at, args_at) __attribute__((format(printf, fmt_at, args_at)))
#else
#define QN_PRINTF(fmt_at, args_at)
#endif

/** Set status and sentence (err may be NULL) and return the status. Control bytes that an argument brings in become '?'. */
qn_status qn_fail(qn_err *err, qn_status status, const char *fmt, ...) QN_PRINTF(3, 4);

/** Put "<prefix>: " in front of the sentence that is there, e.g. the file's name. Returns err's status (QN_ERR_ARG when err is NULL). */
qn_status qn_fail_in(qn_err *err, qn_status status, const char *fmt, ...) QN_PRINTF(3, 4);

/** Forward a failure. */
#define QN_TRY(call)                            \
    do {                                        \
        const qn_status qn_try_ = (call);       \
        if (qn_try_ != QN_OK) return qn_try_;   \
    } while (0)

/** For `%.*s` with a qn_str: at most 120 bytes of it. */
#define QN_STR_ARG(s) (int)((s).len < 120 ? (s).len : 120), (s).ptr

/** A qn_str of a string literal. */
#define QN_LIT(s) ((qn_str){ (s), sizeof(s) - 1 })

#endif

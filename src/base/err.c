#include "src/base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

/*
 * A terminal must not obey bytes that came out of a file, and a sentence ends up in JSON: control characters (C0, DEL, C1) turn into '?',
 * and so does what is not UTF-8, a character that was cut in two included.
 */
static void clean(char *text)
{
    uint8_t *s = (uint8_t *)text;
    for (size_t left = strlen(text); left;) {
        utf8proc_int32_t c;
        const utf8proc_ssize_t k = utf8proc_iterate(s, (utf8proc_ssize_t)left, &c);
        const size_t n = k > 0 ? (size_t)k : 1;
        if (k <= 0 || c < 0x20 || (c >= 0x7f && c < 0xa0)) memset(s, '?', n);
        s += n;
        left -= n;
    }
}

qn_status qn_fail(qn_err *err, qn_status status, const char *fmt, ...)
{
    if (!err) return status;
    err->status = status;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    clean(err->text);
    return status;
}

qn_status qn_fail_in(qn_err *err, qn_status status, const char *fmt, ...)
{
    if (!err) return status;
    char old[sizeof err->text];
    memcpy(old, err->text, sizeof old);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    const size_t n = strlen(err->text);
    snprintf(err->text + n, sizeof err->text - n, ": %s", old);
    err->status = status;
    clean(err->text);
    return status;
}

const char *qn_status_name(qn_status s)
{
    static const char *const names[] = {
        [QN_OK] = "ok",
        [QN_ERR_NOMEM] = "out of memory",
        [QN_ERR_IO] = "input/output error",
        [QN_ERR_FORMAT] = "malformed input",
        [QN_ERR_UNSUPPORTED] = "not supported",
        [QN_ERR_ARG] = "argument out of range",
        [QN_ERR_NOT_FOUND] = "not found",
        [QN_ERR_TYPE] = "wrong type",
        [QN_ERR_CTX_FULL] = "context full",
        [QN_ERR_CANCELLED] = "cancelled",
        [QN_ERR_TEMPLATE] = "template error",
        [QN_ERR_LIMIT] = "limit reached",
        [QN_ERR_NUMERIC] = "numeric error",
    };
    const size_t i = (size_t)s;
    return i < sizeof names / sizeof *names ? names[i] : "unknown status";
}

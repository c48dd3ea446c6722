#include "src/base/opts.h"

#include <string.h>

qn_status qn_opts_take(void *to, size_t n, const void *from, const char *what, qn_err *err)
{
    size_t size = 0;
    memset(to, 0, n);
    if (from) {
        memcpy(&size, from, sizeof size);
        if (size < sizeof size) return qn_fail(err, QN_ERR_ARG, "the size of the %s options is not set", what);
        for (size_t i = n; i < size; i++)
            if (((const char *)from)[i])
                return qn_fail(err, QN_ERR_UNSUPPORTED, "the %s options have a field at byte %zu that this version of the library does not know", what, i);
        memcpy(to, from, size < n ? size : n);
    }
    memcpy(to, &n, sizeof n);
    return QN_OK;
}

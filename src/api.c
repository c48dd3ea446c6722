#include "src/base/err.h"

#define STR_(x) #x
#define STR(x) STR_(x)

const char *qn_version(void)
{
    return STR(QN_VERSION_MAJOR) "." STR(QN_VERSION_MINOR) "." STR(QN_VERSION_PATCH);
}

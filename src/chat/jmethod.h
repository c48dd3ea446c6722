/* Tables of methods, for the lookup in jmethod.c. */
#ifndef QN_CHAT_JMETHOD_H
#define QN_CHAT_JMETHOD_H

#include "src/chat/jfilter.h"

extern const qn_jfn qn_jmethods_str[];
/** Python's islower, isupper. */
bool qn_js_is_case(const qn_jstr *s, bool upper);

#endif

/* Chat templates, beside what quern.h says of them. */
#ifndef QN_CHAT_TEMPLATE_H
#define QN_CHAT_TEMPLATE_H

#include "src/base/err.h"

/** qn_template_open with the words that qn_template_source gives; `from` must be static. */
qn_status qn_template_open_from(qn_template **out, qn_str source, const qn_template_limits *limits, const char *from, qn_err *err);

/** The template of a family that is known by its architecture, for files that have none.
 *  @param from  out: "family gemma" or "default chatml", static */
qn_str qn_template_of_family(const char *arch, const char **from);

#endif

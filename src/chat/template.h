/* Chat templates, beside what quern.h says of them. */
#ifndef QN_CHAT_TEMPLATE_H
#define QN_CHAT_TEMPLATE_H

#include "src/base/err.h"

/** qn_template_open with the words that qn_template_source gives; `from` must be static. */
qn_status qn_template_open_from(qn_template **out, qn_str source, const qn_template_limits *limits, const char *from, qn_err *err);

/** Does the vocabulary have a control token of this text? */
typedef bool qn_has_token_fn(const void *user, const char *text);

/** The template of a family, for files that have none: known by the architecture, or by control tokens of the vocabulary.
 *  @param from  out: "family gemma" or "default chatml", static */
qn_str qn_template_of_family(const char *arch, qn_has_token_fn *has, const void *user, const char **from);

#endif

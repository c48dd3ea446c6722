/* From messages to token ids. */
#ifndef QUERN_CLI_PROMPT_H
#define QUERN_CLI_PROMPT_H

#include "cli_tokens.h"

#include <jansson.h>

/** Text as a JSON string, invalid UTF-8 as U+FFFD. NULL without memory. */
json_t *cli_json_text(const char *text, size_t n);

/** Set "bos_token" and "eos_token" to the texts of the model's, where it has them. */
void cli_context_tokens(json_t *context, const qn_model *model);

/** The prompt of a conversation: rendered with the model's special tokens, its messages never parsed for such; BOS in front where the
 *  model asks for one and the template has none. @param messages array of {"role", "content"}, borrowed */
qn_status cli_prompt_chat(const qn_model *model, const qn_template *t, json_t *messages, cli_ids *out, qn_err *err);
/** The template a model should be prompted with; says on stderr when it is not the file's own. */
qn_status cli_template_open(qn_template **out, const qn_model *model, qn_err *err);

#endif

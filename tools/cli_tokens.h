/* Token ids that grow, and text made into them. */
#ifndef QUERN_CLI_TOKENS_H
#define QUERN_CLI_TOKENS_H

#include "cli.h"

typedef struct cli_ids {
    int32_t *id;
    size_t n, cap;
} cli_ids;
void cli_ids_free(cli_ids *ids);
/** Room for n ids in all. */
bool cli_ids_reserve(cli_ids *ids, size_t n);

/** qn_tokenize into ids that grow. */
qn_status cli_tokenize(const qn_model *model, qn_str text, int flags, const qn_range *plain, size_t n_plain, cli_ids *out, qn_err *err);
/** The prompt of plain text: special tokens are added and parsed. */
qn_status cli_prompt_raw(const qn_model *model, const char *text, size_t n, cli_ids *out, qn_err *err);

#endif

#include "cli_tokens.h"

#include <stdlib.h>
#include <string.h>

void cli_ids_free(cli_ids *ids)
{
    free(ids->id);
    *ids = (cli_ids){ 0 };
}

bool cli_ids_reserve(cli_ids *ids, size_t n)
{
    if (n <= ids->cap) return true;
    int32_t *bigger = realloc(ids->id, n * sizeof *bigger);
    if (!bigger) return false;
    ids->id = bigger;
    ids->cap = n;
    return true;
}

/* Rarely more tokens than bytes; when there are, the second call has the room that the first one told. */
qn_status cli_tokenize(const qn_model *model, qn_str text, int flags, const qn_range *plain, size_t n_plain, cli_ids *out, qn_err *err)
{
    size_t want = text.len + 8;
    for (;;) {
        if (!cli_ids_reserve(out, want)) {
            err->status = QN_ERR_NOMEM;
            snprintf(err->text, sizeof err->text, "no memory for %zu tokens", want);
            return QN_ERR_NOMEM;
        }
        const qn_status status = qn_tokenize(model, text, flags, plain, n_plain, out->id, out->cap, &out->n, err);
        if (status != QN_ERR_LIMIT || out->n <= out->cap) return status;
        want = out->n;
    }
}

qn_status cli_prompt_raw(const qn_model *model, const char *text, size_t n, cli_ids *out, qn_err *err)
{
    return cli_tokenize(model, (qn_str){ text, n }, QN_TOK_SPECIAL | QN_TOK_PARSE, NULL, 0, out, err);
}

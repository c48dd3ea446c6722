#include "cli_prompt.h"

#include "cli_term.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

json_t *cli_json_text(const char *text, size_t n)
{
    size_t n_clean;
    char *clean = cli_utf8_clean(text, n, &n_clean);
    json_t *s = clean ? json_stringn(clean, n_clean) : NULL;
    free(clean);
    return s;
}

static qn_status no_memory(qn_err *err)
{
    err->status = QN_ERR_NOMEM;
    snprintf(err->text, sizeof err->text, "no memory for the prompt");
    return QN_ERR_NOMEM;
}

/* The BOS that the model's metadata wants in front of every text, or -1. */
static int32_t wanted_bos(const qn_model *model)
{
    int32_t ids[8];
    size_t n = 0;
    const int32_t bos = qn_token_id(model, "bos");
    if (qn_tokenize(model, (qn_str){ "", 0 }, QN_TOK_SPECIAL, NULL, 0, ids, 8, &n, NULL) != QN_OK) return -1;
    return n && bos >= 0 && ids[0] == bos ? bos : -1;
}

static qn_status put_bos(const qn_model *model, cli_ids *ids, qn_err *err)
{
    const int32_t bos = wanted_bos(model);
    if (bos < 0 || (ids->n && ids->id[0] == bos)) return QN_OK;
    if (!cli_ids_reserve(ids, ids->n + 1)) return no_memory(err);
    memmove(ids->id + 1, ids->id, ids->n * sizeof *ids->id);
    ids->id[0] = bos;
    ids->n++;
    return QN_OK;
}

static void set_token(json_t *context, const char *key, const qn_model *model, const char *role)
{
    qn_str text;
    const int32_t id = qn_token_id(model, role);
    if (id >= 0 && qn_token_text(model, id, true, &text) == QN_OK) json_object_set_new(context, key, cli_json_text(text.ptr, text.len));
}

void cli_context_tokens(json_t *context, const qn_model *model)
{
    set_token(context, "bos_token", model, "bos");
    set_token(context, "eos_token", model, "eos");
}

/* As transformers gives it: what a conversation does not have is there as none. */
static char *context_of(const qn_model *model, json_t *messages)
{
    json_t *context = json_object();
    json_object_set(context, "messages", messages);
    json_object_set_new(context, "tools", json_null());
    json_object_set_new(context, "documents", json_null());
    json_object_set_new(context, "add_generation_prompt", json_true());
    cli_context_tokens(context, model);
    char *text = json_dumps(context, JSON_COMPACT);
    json_decref(context);
    return text;
}

qn_status cli_prompt_chat(const qn_model *model, const qn_template *t, json_t *messages, cli_ids *out, qn_err *err)
{
    qn_prompt p = { 0 };
    char *context = context_of(model, messages);
    if (!context) return no_memory(err);
    qn_status status = qn_template_render(t, (qn_str){ context, strlen(context) }, (int64_t)time(NULL), &p, err);
    free(context);
    if (status != QN_OK) return status;
    status = cli_tokenize(model, (qn_str){ p.text, p.len }, QN_TOK_PARSE, p.plain, p.n_plain, out, err);
    qn_prompt_free(&p);
    return status == QN_OK ? put_bos(model, out, err) : status;
}

qn_status cli_template_open(qn_template **out, const qn_model *model, qn_err *err)
{
    const qn_status status = qn_template_of_model(out, model, err);
    const char *source = status == QN_OK ? qn_template_source(*out) : "file";
    if (!strncmp(source, "family ", 7))
        fprintf(stderr, "quern: the model has no chat template; the one of the %s family is used\n", source + 7);
    else if (strcmp(source, "file") != 0)
        fprintf(stderr, "quern: the model has no chat template and its family is unknown; the default (%s) is used\n",
                strncmp(source, "default ", 8) ? source : source + 8);
    return status;
}

/* From a line to a prompt and its options. */
#include "batch.h"

#include <stdlib.h>
#include <string.h>

/* ---- messages ---- */

/* Content in parts becomes one text, as templates want it. */
static bool join_parts(batch_request *r, const char *field, json_t *message, const json_t *parts)
{
    size_t n = 0, i;
    json_t *part;
    char *text = NULL;
    json_array_foreach(parts, i, part) {
        const char *type = json_string_value(json_object_get(part, "type"));
        const json_t *piece = json_object_get(part, "text");
        if (!type || strcmp(type, "text") != 0 || !json_is_string(piece)) {
            free(text);
            return batch_refuse(r, field, "parts of type %.30s are not supported", type ? type : "unknown");
        }
        const size_t len = json_string_length(piece);
        char *bigger = realloc(text, n + len + 1);
        if (!bigger) {
            free(text);
            return batch_refuse(r, field, "no memory for it");
        }
        text = bigger;
        memcpy(text + n, json_string_value(piece), len);
        n += len;
    }
    const bool bad = json_object_set_new(message, "content", json_stringn(text ? text : "", n)) != 0;
    free(text);
    return bad ? batch_refuse(r, field, "no memory for it") : true;
}

static bool check_messages(batch_request *r)
{
    size_t i;
    json_t *m;
    json_array_foreach(r->messages, i, m) {
        char field[40];
        json_t *content = json_object_get(m, "content");
        snprintf(field, sizeof field, "messages[%zu].role", i);
        if (!json_is_string(json_object_get(m, "role"))) return batch_refuse(r, field, "is missing or no text");
        snprintf(field, sizeof field, "messages[%zu].content", i);
        if (json_is_array(content)) {
            if (!join_parts(r, field, m, content)) return false;
        } else if (!json_is_string(content)) {
            return batch_refuse(r, field, "is missing or no text");
        }
    }
    return true;
}

/* ---- prompts ---- */

static bool take_ids(batch_request *r)
{
    size_t i;
    json_t *v;
    const size_t n = json_array_size(r->prompt);
    if (!cli_ids_reserve(&r->ids, n)) return batch_refuse(r, "prompt", "no memory for it");
    json_array_foreach(r->prompt, i, v) {
        const json_int_t id = json_integer_value(v);
        if (!json_is_integer(v) || id < 0 || id > INT32_MAX) return batch_refuse(r, "prompt", "item %zu is no token id", i);
        r->ids.id[i] = (int32_t)id;
    }
    r->ids.n = n;
    return true;
}

static bool make_prompt(batch_request *r, const qn_model *model, qn_template **t)
{
    qn_err err = { 0 };
    qn_status status = QN_OK;
    if (!r->is_chat && json_is_array(r->prompt)) return take_ids(r);
    if (!r->is_chat) {
        status = cli_prompt_raw(model, json_string_value(r->prompt), json_string_length(r->prompt), &r->ids, &err);
        return status == QN_OK ? true : batch_refuse(r, "prompt", "%s", err.text);
    }
    if (!check_messages(r)) return false;
    if (!*t) status = cli_template_open(t, model, &err);
    if (status == QN_OK) status = cli_prompt_chat(model, *t, r->messages, &r->ids, &err);
    return status == QN_OK ? true : batch_refuse(r, "messages", "%s", err.text);
}

/* ---- lines ---- */

/* OpenAI's line: what is asked for stands in "body", and the address says which of the two it is. @return the body, or NULL */
static json_t *open_envelope(batch_request *r)
{
    const char *name, *method = json_string_value(json_object_get(r->json, "method")), *url = json_string_value(json_object_get(r->json, "url"));
    json_t *body = json_object_get(r->json, "body"), *value;
    json_object_foreach(r->json, name, value) {
        if (strcmp(name, "custom_id") && strcmp(name, "method") && strcmp(name, "url") && strcmp(name, "body")) {
            (void)batch_refuse(r, name, "stands beside \"body\"; it belongs inside");
            return NULL;
        }
    }
    r->is_chat = url && !strcmp(url, "/v1/chat/completions");
    if (!method || strcmp(method, "POST") != 0) (void)batch_refuse(r, "method", "takes \"POST\"");
    else if (!r->is_chat && (!url || strcmp(url, "/v1/completions") != 0)) (void)batch_refuse(r, "url", "takes /v1/chat/completions or /v1/completions");
    else if (!json_is_object(body)) (void)batch_refuse(r, "body", "is missing or no object");
    else return body;
    return NULL;
}

/* @return the object with the request's fields, or NULL */
static json_t *open_line(batch_request *r)
{
    json_error_t e;
    const batch_line *line = r->line;
    r->json = json_loadb(line->text, line->len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &e);
    const json_t *id = json_object_get(r->json, "custom_id");
    if (!r->json) (void)batch_refuse(r, NULL, "this is no JSON: %s, at byte %d", e.text, e.position);
    else if (!json_is_object(r->json)) (void)batch_refuse(r, NULL, "a request is an object");
    else if (line->same_as) (void)batch_refuse(r, "custom_id", "'%.100s' is that of line %d", json_string_value(id), line->same_as);
    else if (id && !json_is_null(id) && !line->custom_id) (void)batch_refuse(r, "custom_id", "takes a text that is not empty and holds no NUL");
    else if (json_object_get(r->json, "body") || json_object_get(r->json, "url") || json_object_get(r->json, "method")) return open_envelope(r);
    else {
        r->is_chat = json_object_get(r->json, "messages") != NULL;
        if (r->is_chat || json_object_get(r->json, "prompt")) return r->json;
        (void)batch_refuse(r, NULL, "there is neither \"body\" nor \"messages\" nor \"prompt\"");
    }
    return NULL;
}

bool batch_request_read(batch_request *r, const batch_line *line, const qn_model *model, qn_template **t, const cli_sampling *defaults,
                        int32_t max_tokens)
{
    *r = (batch_request){ .line = line, .max_tokens = max_tokens, .n = 1 };
    json_t *body = open_line(r);
    if (!body) return false;
    (void)cli_sampling_options(&r->sampling);
    r->sampling.o = defaults->o;
    if (!batch_fields_read(r, body)) return false;
    if (!r->n_bias) {
        r->sampling.o.bias = defaults->o.bias;
        r->sampling.o.n_bias = defaults->o.n_bias;
    }
    return make_prompt(r, model, t);
}

void batch_request_free(batch_request *r)
{
    json_decref(r->messages);
    json_decref(r->json);
    free(r->bias);
    cli_ids_free(&r->ids);
}

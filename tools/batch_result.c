/* Results in the shape of OpenAI's batches, and the number of the line beside it. */
#include "batch.h"

#include "cli_answer.h"

#include <string.h>
#include <time.h>

static json_t *envelope(const batch_line *line, json_t *response, json_t *error)
{
    char id[64];
    snprintf(id, sizeof id, BATCH_ID "%016llx-%d", (unsigned long long)line->hash, line->number);
    return json_pack("{s:s, s:s?, s:i, s:o, s:o}", "id", id, "custom_id", line->custom_id, "line", line->number, "response", response, "error", error);
}

static json_t *choice_json(bool is_chat, int32_t i, const batch_choice *c)
{
    json_t *text = cli_json_text(c->n_text ? c->text : "", c->n_text);
    const char *finish = cli_finish_name(c->result.finish);
    if (!is_chat) return json_pack("{s:i, s:o, s:n, s:s}", "index", i, "text", text, "logprobs", "finish_reason", finish);
    return json_pack("{s:i, s:{s:s, s:o}, s:n, s:s}", "index", i, "message", "role", "assistant", "content", text, "logprobs", "finish_reason", finish);
}

static json_t *usage(const batch_choice *choice, int32_t n)
{
    const int32_t n_prompt = choice[0].result.n_prompt;
    int32_t n_generated = 0;
    for (int32_t i = 0; i < n; i++) n_generated += choice[i].result.n_generated;
    return json_pack("{s:i, s:i, s:i, s:{s:i}}", "prompt_tokens", n_prompt, "completion_tokens", n_generated, "total_tokens", n_prompt + n_generated,
                     "prompt_tokens_details", "cached_tokens", choice[0].result.n_cached);
}

json_t *batch_result(const batch_line *line, bool is_chat, const char *model, const batch_choice *choice, int32_t n)
{
    json_t *choices = json_array(), *name = cli_json_text(model, strlen(model));
    for (int32_t i = 0; i < n; i++) json_array_append_new(choices, choice_json(is_chat, i, &choice[i]));
    json_t *id = json_sprintf("%s-%016llx-%d", is_chat ? "chatcmpl" : "cmpl", (unsigned long long)line->hash, line->number);
    json_t *request_id = json_sprintf("req_%016llx-%d", (unsigned long long)line->hash, line->number);
    json_t *body = json_pack("{s:o, s:s, s:I, s:o, s:o, s:o}", "id", id, "object", is_chat ? "chat.completion" : "text_completion", "created",
                             (json_int_t)time(NULL), "model", name, "choices", choices, "usage", usage(choice, n));
    return envelope(line, json_pack("{s:i, s:o, s:o}", "status_code", 200, "request_id", request_id, "body", body), json_null());
}

json_t *batch_error(const batch_line *line, const char *code, const char *field, const char *why)
{
    char text[BATCH_WHY + 200];
    snprintf(text, sizeof text, "line %d: %s%s%s", line->number, field ? field : "", field ? ": " : "", why);
    json_t *message = cli_json_text(text, strlen(text));
    return envelope(line, json_null(), json_pack("{s:s, s:o, s:s?}", "code", code, "message", message, "param", field));
}

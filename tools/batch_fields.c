/* The fields of a request: what each may be, and what it sets. Nothing is ignored but what has no bearing on the text. */
#include "batch.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CHOICES = 128 };

bool batch_refuse(batch_request *r, const char *field, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->why, sizeof r->why, fmt, ap);
    va_end(ap);
    r->at_fault = NULL;
    if (field) {
        snprintf(r->field, sizeof r->field, "%s", field);
        r->at_fault = r->field;
    }
    return false;
}

/* "takes X, not V" with the value as it stands. */
static bool refuse_value(batch_request *r, const char *field, const char *takes, const json_t *v)
{
    char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_COMPACT);
    (void)batch_refuse(r, field, "takes %s, not %.60s", takes, text ? text : "this");
    free(text);
    return false;
}

static bool read_count(batch_request *r, const char *field, const json_t *v, int32_t most, int32_t *out)
{
    char takes[64];
    const json_int_t n = json_integer_value(v);
    snprintf(takes, sizeof takes, "a whole number from 1 to %d", most);
    if (!json_is_integer(v) || n < 1 || n > most) return refuse_value(r, field, takes, v);
    *out = (int32_t)n;
    return true;
}

static bool read_max_tokens(batch_request *r, const char *field, json_t *v)
{
    return read_count(r, field, v, INT32_MAX, &r->max_tokens);
}

static bool read_n(batch_request *r, const char *field, json_t *v)
{
    return read_count(r, field, v, MOST_CHOICES, &r->n);
}

static bool read_stop(batch_request *r, const char *field, json_t *v)
{
    const bool one = json_is_string(v);
    const size_t n = one ? 1 : json_array_size(v);
    if (!one && !json_is_array(v)) return refuse_value(r, field, "a text or an array of texts", v);
    if (n > BATCH_MOST_STOPS) return batch_refuse(r, field, "has %zu texts; %d is the most", n, BATCH_MOST_STOPS);
    r->n_stop = 0;
    for (size_t i = 0; i < n; i++) {
        json_t *s = one ? v : json_array_get(v, i);
        const char *text = json_string_value(s);
        if (!text || !*text || strlen(text) != json_string_length(s)) return refuse_value(r, field, "texts that are not empty and hold no NUL", s);
        r->stop[r->n_stop++] = text;
    }
    return true;
}

static bool read_bias(batch_request *r, const char *field, json_t *v)
{
    const char *key;
    json_t *value;
    if (!json_is_object(v)) return refuse_value(r, field, "an object of token ids and numbers", v);
    free(r->bias);
    r->n_bias = 0;
    r->bias = calloc(json_object_size(v) + 1, sizeof *r->bias);
    if (!r->bias) return batch_refuse(r, field, "no memory for it");
    json_object_foreach(v, key, value) {
        char *end;
        const long id = strtol(key, &end, 10);
        const double x = json_number_value(value);
        if (end == key || *end || id < 0 || id > INT32_MAX) return batch_refuse(r, field, "'%.40s' is no token id", key);
        if (!json_is_number(value) || fabs(x) > (double)FLT_MAX) return refuse_value(r, field, "numbers", value);
        r->bias[r->n_bias++] = (qn_logit_bias){ (int32_t)id, x <= -100 ? -INFINITY : (float)x }; /* -100 bans, as OpenAI says */
    }
    return true;
}

static bool keep_messages(batch_request *r, const char *field, json_t *v)
{
    if (!json_is_array(v) || !json_array_size(v)) return refuse_value(r, field, "an array of messages", v);
    json_decref(r->messages);
    r->messages = json_deep_copy(v);
    return r->messages ? true : batch_refuse(r, field, "no memory for it");
}

static bool keep_prompt(batch_request *r, const char *field, json_t *v)
{
    const json_t *first = json_array_get(v, 0);
    if (json_is_array(v) && json_array_size(v) == 1 && !json_is_integer(first)) return keep_prompt(r, field, json_array_get(v, 0));
    if (json_is_array(v) && (json_is_string(first) || json_is_array(first))) return batch_refuse(r, field, "takes one text; write a line for each");
    if (!json_is_string(v) && !json_is_integer(first)) return refuse_value(r, field, "a text or an array of token ids", v);
    r->prompt = v;
    return true;
}

/* Fields that would change the answer and are not there: allowed where they ask for nothing. */
static bool ask_nothing(batch_request *r, const char *field, json_t *v)
{
    const bool nothing = json_is_false(v) || (json_is_array(v) && !json_array_size(v)) || (json_is_string(v) && !*json_string_value(v));
    return nothing ? true : batch_refuse(r, field, "is not supported");
}

/* Which choice of tools: "none" asks for nothing. */
static bool ask_no_tool(batch_request *r, const char *field, json_t *v)
{
    return json_is_string(v) && !strcmp(json_string_value(v), "none") ? true : batch_refuse(r, field, "is not supported");
}

static bool ask_text(batch_request *r, const char *field, json_t *v)
{
    const char *type = json_string_value(json_object_get(v, "type"));
    return type && !strcmp(type, "text") ? true : batch_refuse(r, field, "is not supported but for {\"type\": \"text\"}");
}

static bool ask_one(batch_request *r, const char *field, json_t *v)
{
    return json_integer_value(v) == 1 ? true : batch_refuse(r, field, "is not supported above 1");
}

static bool pass(batch_request *r, const char *field, json_t *v)
{
    (void)r, (void)field, (void)v;
    return true;
}

enum { CHAT = 1, TEXT = 2, ANY = 3 };

static const struct field {
    const char *name;
    int of;
    bool (*read)(batch_request *r, const char *field, json_t *v);
} fields[] = {
    { "messages", CHAT, keep_messages },
    { "prompt", TEXT, keep_prompt },
    { "max_tokens", ANY, read_max_tokens },
    { "max_completion_tokens", ANY, read_max_tokens },
    { "n", ANY, read_n },
    { "stop", ANY, read_stop },
    { "logit_bias", ANY, read_bias },
    { "stream", ANY, ask_nothing },
    { "logprobs", ANY, ask_nothing },
    { "echo", TEXT, ask_nothing },
    { "suffix", TEXT, ask_nothing },
    { "best_of", TEXT, ask_one },
    { "tools", CHAT, ask_nothing },
    { "functions", CHAT, ask_nothing },
    { "tool_choice", CHAT, ask_no_tool },
    { "response_format", CHAT, ask_text },
    { "model", ANY, pass },
    { "user", ANY, pass },
    { "metadata", ANY, pass },
    { "store", ANY, pass },
    { "service_tier", ANY, pass },
    { "safety_identifier", ANY, pass },
    { "prompt_cache_key", ANY, pass },
};

/* Everything of the sampler, under the names of the command line with '_' for '-'; "temperature" is OpenAI's. */
static const cli_opt *find_sampling(const cli_sampling *s, const char *field)
{
    if (!strcmp(field, "temperature")) field = "temp";
    for (const cli_opt *o = s->opt; o->kind; o++) {
        if (o->kind != CLI_FLOAT && o->kind != CLI_INT && o->kind != CLI_U64) continue;
        const char *a = o->name, *b = field;
        while (*a && (*a == *b || (*a == '-' && *b == '_'))) a++, b++;
        if (!*a && !*b) return o;
    }
    return NULL;
}

static bool read_sampling(batch_request *r, const cli_opt *o, const char *field, json_t *v)
{
    char takes[80];
    const double x = json_number_value(v);
    const bool whole = o->kind != CLI_FLOAT;
    if (o->hi >= INT32_MAX || o->lo == o->hi) snprintf(takes, sizeof takes, "a %snumber", whole ? "whole " : "");
    else snprintf(takes, sizeof takes, "a %snumber from %.10g to %.10g", whole ? "whole " : "", o->lo, o->hi);
    if (!(whole ? json_is_integer(v) : json_is_number(v)) || (o->kind != CLI_U64 && !(x >= o->lo && x <= o->hi))) return refuse_value(r, field, takes, v);
    if (o->kind == CLI_U64) *(uint64_t *)o->target = (uint64_t)json_integer_value(v);
    else if (o->kind == CLI_INT) *(int32_t *)o->target = (int32_t)x;
    else *(float *)o->target = (float)x;
    return true;
}

static bool read_field(batch_request *r, const char *name, json_t *v)
{
    if (json_is_null(v)) return true; /* as if it were not there */
    const int kind = r->is_chat ? CHAT : TEXT;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (strcmp(fields[i].name, name) != 0) continue;
        if (!(fields[i].of & kind)) return batch_refuse(r, name, "does not go with %s", r->is_chat ? "messages" : "a prompt");
        return fields[i].read(r, name, v);
    }
    const cli_opt *o = find_sampling(&r->sampling, name);
    return o ? read_sampling(r, o, name, v) : batch_refuse(r, name, "is not supported");
}

bool batch_fields_read(batch_request *r, json_t *body)
{
    const char *name;
    json_t *value;
    json_object_foreach(body, name, value) {
        if (body == r->json && !strcmp(name, "custom_id")) continue; /* the line's */
        if (!read_field(r, name, value)) return false;
    }
    if (r->is_chat && !r->messages) return batch_refuse(r, "messages", "is missing");
    if (!r->is_chat && !r->prompt) return batch_refuse(r, "prompt", "is missing");
    const json_t *top_p = json_object_get(body, "top_p");
    if (json_is_number(top_p) && r->sampling.o.top_p == 0) r->sampling.o.top_p = FLT_MIN; /* the best alone, where the library's 0 is off */
    r->sampling.o.bias = r->bias;
    r->sampling.o.n_bias = r->n_bias;
    return true;
}

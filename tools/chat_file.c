/* Conversations as files: {"quern_chat": 1, "model": name, "settings": {"temp": 0.8, ...}, "messages": [{"role", "content"}, ...]}. */
#include "chat.h"
#include "cli_out.h"
#include "cli_term.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The settings are the sampling options that hold numbers, and the order, under the names of the command line. */
static json_t *settings_json(const chat *c)
{
    json_t *o = json_object();
    for (const cli_opt *t = c->sampling.opt; t->kind; t++) {
        if (t->kind == CLI_FLOAT) json_object_set_new(o, t->name, json_real((double)*(const float *)t->target));
        if (t->kind == CLI_INT) json_object_set_new(o, t->name, json_integer(*(const int32_t *)t->target));
    }
    json_object_set_new(o, "order", json_string(c->sampling.o.order ? c->sampling.o.order : qn_sampler_default_order()));
    if (c->seed <= INT64_MAX) json_object_set_new(o, "seed", json_integer((json_int_t)c->seed)); /* else none was drawn yet */
    json_object_set_new(o, "n_answers", json_integer((json_int_t)c->n_answers));
    return o;
}

json_t *chat_json(const chat *c)
{
    qn_model_info info;
    qn_model_get_info(c->engine.model, &info);
    json_t *o = json_object();
    json_object_set_new(o, "quern_chat", json_integer(1));
    json_object_set_new(o, "model", cli_json_text(info.name, strlen(info.name)));
    json_object_set_new(o, "settings", settings_json(c));
    json_object_set(o, "messages", c->messages);
    return o;
}

void chat_save(chat *c, const char *path)
{
    cli_out out;
    json_t *o = chat_json(c);
    bool saved = cli_out_open(&out, path);
    if (saved && (json_dumpf(o, out.f, JSON_INDENT(2)) != 0 || fputc('\n', out.f) == EOF)) {
        cli_fault("cannot write %s: %s", path, strerror(errno));
        cli_out_abort(&out);
        saved = false;
    }
    if (saved && cli_out_commit(&out)) chat_note("(saved to %s)", path);
    else c->failed = true;
    json_decref(o);
}

/* A copy of the turns that a file holds, or NULL when one is not a turn. */
static json_t *read_messages(json_t *list)
{
    if (!json_is_array(list)) return NULL;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *role = json_string_value(json_object_get(json_array_get(list, i), "role"));
        if (!role || !json_is_string(json_object_get(json_array_get(list, i), "content"))) return NULL;
        if (strcmp(role, "user") != 0 && strcmp(role, "assistant") != 0 && (i || strcmp(role, "system") != 0)) return NULL;
    }
    return json_deep_copy(list);
}

static bool read_number(const cli_opt *t, json_t *v)
{
    const double x = json_number_value(v);
    if (!json_is_number(v) || !(x >= t->lo && x <= t->hi)) return false;
    if (t->kind == CLI_FLOAT) *(float *)t->target = (float)x;
    else *(int32_t *)t->target = (int32_t)x;
    return true;
}

/* Settings that are absent stay as they are. @return the name of the one at fault, or NULL */
static const char *read_settings(chat *c, json_t *o)
{
    for (const cli_opt *t = c->sampling.opt; t->kind; t++) {
        json_t *v = t->name ? json_object_get(o, t->name) : NULL;
        if (v && (t->kind == CLI_FLOAT || t->kind == CLI_INT) && !read_number(t, v)) return t->name;
    }
    json_t *seed = json_object_get(o, "seed"), *n = json_object_get(o, "n_answers");
    if (seed && (!json_is_integer(seed) || json_integer_value(seed) < 0)) return "seed";
    if (n && (!json_is_integer(n) || json_integer_value(n) < 0)) return "n_answers";
    if (seed) c->seed = (uint64_t)json_integer_value(seed);
    if (n) c->n_answers = (uint64_t)json_integer_value(n);
    return NULL;
}

/* The settings count only if the library takes them all. */
static bool take_settings(chat *c, json_t *o, const char *path)
{
    const chat before = *c;
    qn_err err = { 0 };
    qn_sampler *s = NULL;
    const char *bad = read_settings(c, o);
    const char *order = json_string_value(json_object_get(o, "order"));
    char *copy = order && strcmp(order, qn_sampler_default_order()) != 0 ? strdup(order) : NULL;
    if (copy) c->sampling.o.order = copy; /* lives as long as the program: a load is rare */
    if (!bad && qn_sampler_open(&s, c->engine.model, &c->sampling.o, &err) == QN_OK) {
        qn_sampler_close(&s);
        return true;
    }
    if (bad) cli_fault("%s: the setting '%s' is out of range", path, bad);
    else cli_fault("%s: %s", path, err.text);
    free(copy);
    *c = before;
    return false;
}

bool chat_take(chat *c, json_t *o, const char *path, bool with_settings)
{
    json_t *messages = read_messages(json_object_get(o, "messages"));
    if (json_integer_value(json_object_get(o, "quern_chat")) != 1 || !messages) {
        cli_fault("%s is not a saved chat", path);
    } else if (!with_settings || take_settings(c, json_object_get(o, "settings"), path)) {
        json_decref(c->messages);
        c->messages = messages;
        chat_note("(%zu turns from %s)", json_array_size(c->messages), path);
        return true;
    }
    json_decref(messages);
    return false;
}

void chat_load(chat *c, const char *path)
{
    json_error_t e;
    json_t *o = json_load_file(path, JSON_ALLOW_NUL, &e);
    if (!o) cli_fault("cannot read %s: %s", path, e.text);
    if (!o || !chat_take(c, o, path, true)) c->failed = true;
    json_decref(o);
}

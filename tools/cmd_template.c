/* Messages to the prompt that a model sees. */
#include "cli_prompt.h"
#include "cli_term.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char about[] =
    "Render a chat template: the model's own, or one from a file. With -p, the user's turn (after a system turn with -s) as the model would\n"
    "see it; with --jsonl, conversations from stdin, a JSON object a line, from\n"
    "{\"messages\", \"tools\", \"documents\", \"add_generation_prompt\", \"kwargs\": {...}, \"bos_token\", \"eos_token\", \"now\": \"2026-01-15T12:00:00\"}\n"
    "to {\"text\"} or {\"error\"}; with --raw --jsonl, lines {\"template\", \"context\": {...}}. With none of these, the template itself.";

typedef struct template_args {
    const char *model, *file, *prompt, *system;
    bool raw, jsonl;
    qn_model *m;
    qn_template *t;
    char *source;
    size_t n_source;
} template_args;

/* ---- one render ---- */

static bool parse_now(json_t *v, int64_t *out)
{
    struct tm tm = { 0 };
    *out = (int64_t)time(NULL);
    if (!v || json_is_null(v)) return true;
    const char *text = json_string_value(v), *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
    if (!end || *end) return false;
    *out = (int64_t)timegm(&tm);
    return true;
}

static json_t *error_line(const char *text)
{
    json_t *o = json_object();
    json_object_set_new(o, "error", cli_json_text(text, strlen(text)));
    return o;
}

static json_t *render(const qn_template *t, json_t *context, json_t *when)
{
    qn_err err = { 0 };
    qn_prompt p = { 0 };
    int64_t now;
    if (!parse_now(when, &now)) return error_line("\"now\" is no time like 2026-01-15T12:00:00");
    char *text = json_dumps(context, JSON_COMPACT);
    if (!text) return error_line("the context is no JSON object");
    const qn_status status = qn_template_render(t, (qn_str){ text, strlen(text) }, now, &p, &err);
    free(text);
    if (status != QN_OK) return error_line(err.text);
    json_t *o = json_object();
    json_object_set_new(o, "text", cli_json_text(p.text, p.len));
    qn_prompt_free(&p);
    return o;
}

/* The variables that transformers gives a template; `kwargs` win. */
static json_t *context_of(const template_args *a, json_t *line)
{
    static const char *const names[] = { "messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token" };
    json_t *c = json_object();
    if (a->m) cli_context_tokens(c, a->m);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *v = json_object_get(line, names[i]);
        if (v) json_object_set(c, names[i], v);
    }
    if (!json_object_get(c, "tools")) json_object_set_new(c, "tools", json_null());
    if (!json_object_get(c, "documents")) json_object_set_new(c, "documents", json_null());
    if (!json_object_get(c, "add_generation_prompt")) json_object_set_new(c, "add_generation_prompt", json_false());
    json_object_update(c, json_object_get(line, "kwargs"));
    return c;
}

static json_t *answer_conversation(const template_args *a, json_t *line)
{
    json_t *c = context_of(a, line), *o = render(a->t, c, json_object_get(line, "now"));
    json_decref(c);
    return o;
}

static json_t *answer_raw(json_t *line)
{
    qn_err err = { 0 };
    qn_template *t;
    json_t *source = json_object_get(line, "template"), *context = json_object_get(line, "context");
    if (!json_is_string(source)) return error_line("\"template\" is missing");
    if (qn_template_open(&t, (qn_str){ json_string_value(source), json_string_length(source) }, NULL, &err) != QN_OK) return error_line(err.text);
    json_t *empty = json_object(), *o = render(t, context ? context : empty, json_object_get(line, "now"));
    json_decref(empty);
    qn_template_close(&t);
    return o;
}

/* ---- lines ---- */

static bool print_line(json_t *o)
{
    const bool done = json_dumpf(o, stdout, JSON_COMPACT) == 0 && putchar('\n') != EOF;
    json_decref(o);
    return done;
}

static int lines(const template_args *a)
{
    char *line = NULL;
    size_t cap = 0, n;
    bool good = true;
    int more = 1;
    while (good && (more = cli_read_line(stdin, &line, &cap, &n)) > 0) {
        json_error_t e;
        if (strspn(line, " \t\r") == n) continue;
        json_t *o = json_loadb(line, n, JSON_ALLOW_NUL, &e);
        if (!json_is_object(o)) good = print_line(error_line(o ? "the line is no JSON object" : e.text));
        else good = print_line(a->raw ? answer_raw(o) : answer_conversation(a, o));
        json_decref(o);
    }
    free(line);
    if (!good || fflush(stdout) != 0) return cli_fault("cannot write to stdout");
    return more < 0 ? CLI_FAULT : CLI_OK;
}

/* ---- for people ---- */

static int print_source(const template_args *a)
{
    qn_value v;
    qn_str s = { a->source, a->n_source };
    if (!a->source && (!qn_file_key(qn_model_file(a->m), "tokenizer.chat_template", &v) || qn_value_as_str(&v, &s) != QN_OK))
        return cli_fault("the model has no chat template (%s would be used); -p TEXT shows a prompt", qn_template_source(a->t));
    const bool good = cli_write_text(stdout, s.ptr, s.len) && (!s.len || s.ptr[s.len - 1] == '\n' || putchar('\n') != EOF);
    return good ? CLI_OK : cli_fault("cannot write to stdout");
}

static json_t *message(const char *role, const char *text)
{
    json_t *m = json_object();
    json_object_set_new(m, "role", json_string(role));
    json_object_set_new(m, "content", cli_json_text(text, strlen(text)));
    return m;
}

static int print_prompt(const template_args *a)
{
    json_t *line = json_object(), *messages = json_array();
    if (a->system) json_array_append_new(messages, message("system", a->system));
    json_array_append_new(messages, message("user", a->prompt));
    json_object_set_new(line, "messages", messages);
    json_object_set_new(line, "add_generation_prompt", json_true());
    json_t *o = answer_conversation(a, line), *text = json_object_get(o, "text");
    int code = CLI_OK;
    if (!text) code = cli_fault("%s", json_string_value(json_object_get(o, "error")));
    else if (!cli_write_text(stdout, json_string_value(text), json_string_length(text))) code = cli_fault("cannot write to stdout");
    json_decref(o);
    json_decref(line);
    return code;
}

static int open_template(template_args *a)
{
    qn_err err = { 0 };
    char path[4096];
    if (a->model || !a->file) {
        const qn_model_opts o = { .size = sizeof o, .vocab_only = true };
        if (!cli_model_path(a->model, path)) return CLI_FAULT;
        if (qn_model_open(&a->m, path, &o, &err) != QN_OK) return cli_fault("%s", err.text);
    }
    if (!a->file) { /* the template of the family is told of where it is used */
        const bool used = a->prompt || a->jsonl;
        const qn_status status = used ? cli_template_open(&a->t, a->m, &err) : qn_template_of_model(&a->t, a->m, &err);
        return status == QN_OK ? -1 : cli_fault("%s", err.text);
    }
    a->source = cli_read_all(a->file, &a->n_source);
    if (!a->source) return CLI_FAULT;
    return qn_template_open(&a->t, (qn_str){ a->source, a->n_source }, NULL, &err) == QN_OK ? -1 : cli_fault("%s: %s", a->file, err.text);
}

static int run(int argc, char **argv)
{
    template_args a = { 0 };
    cli_opt opts[] = {
        { CLI_STR, "model", 'm', "MODEL", "the model whose template and special tokens to use (default: SmolLM2)", &a.model, 0, 0, 0 },
        { CLI_STR, "file", 'f', "FILE", "a template to use instead; then -m is for the special tokens alone", &a.file, 0, 0, 0 },
        { CLI_STR, "prompt", 'p', "TEXT", "print the prompt of this user turn", &a.prompt, 0, 0, 0 },
        { CLI_STR, "system", 's', "TEXT", "with a system turn before it", &a.system, 0, 0, 0 },
        { CLI_FLAG, "jsonl", 0, NULL, "render conversations from stdin", &a.jsonl, 0, 0, 0 },
        { CLI_FLAG, "raw", 0, NULL, "the lines hold the templates: no model, no file", &a.raw, 0, 0, 0 },
        { 0 },
    };
    int code = cli_parse(argc, argv, "template [-m MODEL | --file FILE] [-p TEXT | --jsonl]", about, opts);
    if (code >= 0) return code;
    if (a.raw && (!a.jsonl || a.model || a.file)) return cli_usage("template: --raw goes with --jsonl, and without -m and --file");
    if (a.jsonl && a.prompt) return cli_usage("template: -p and --jsonl exclude each other");
    if (a.system && !a.prompt) return cli_usage("template: -s goes with -p");
    code = a.raw ? -1 : open_template(&a);
    if (code < 0) code = a.jsonl ? lines(&a) : a.prompt ? print_prompt(&a) : print_source(&a);
    qn_template_close(&a.t);
    qn_model_close(&a.m);
    free(a.source);
    return code;
}

extern const qn_cmd qn_cmd_template;
const qn_cmd qn_cmd_template = { "template", "render messages to the prompt a model sees", 50, run };

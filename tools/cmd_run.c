/* One answer or completion. */
#include "cli_answer.h"
#include "cli_common.h"
#include "cli_interrupt.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char about[] =
    "Answer one prompt and end: from -p, a file, or stdin. The prompt becomes the user's turn of the model's chat template; with --raw\n"
    "it is text to be continued. The answer goes to stdout as it comes, byte for byte (on a terminal a newline follows, and control\n"
    "characters are left out); everything else goes to stderr. Ctrl-C ends the answer with exit code 130.";

typedef struct run_args {
    cli_engine engine;
    cli_sampling sampling;
    cli_answer_opts answer;
    const char *prompt, *file, *system;
    bool raw, json, stats;
} run_args;

/* The prompt's bytes, for free(). A final newline of a file or of stdin is the editor's, not the user's: out, except with --raw. */
static int read_prompt(const run_args *a, char **text, size_t *n)
{
    if (a->prompt) {
        *text = strdup(a->prompt);
        *n = strlen(a->prompt);
        return *text ? -1 : cli_fault("no memory for the prompt");
    }
    if (!a->file && isatty(STDIN_FILENO)) return cli_usage("run: no prompt: give -p TEXT or -f FILE, or pipe one in");
    *text = cli_read_all(a->file ? a->file : "-", n);
    if (!*text) return CLI_FAULT;
    if (!a->raw && *n && (*text)[*n - 1] == '\n') (*text)[--*n] = 0;
    return -1;
}

static json_t *message(const char *role, const char *text, size_t n)
{
    json_t *m = json_object(), *content = cli_json_text(text, n);
    json_object_set_new(m, "role", json_string(role));
    json_object_set_new(m, "content", content);
    return m;
}

static qn_status make_prompt(const run_args *a, const char *text, size_t n, cli_ids *ids, qn_err *err)
{
    const qn_model *model = a->engine.model;
    if (a->raw) return cli_prompt_raw(model, text, n, ids, err);
    qn_template *t = NULL;
    qn_status status = cli_template_open(&t, model, err);
    if (status == QN_OK) {
        json_t *messages = json_array();
        if (a->system) json_array_append_new(messages, message("system", a->system, strlen(a->system)));
        json_array_append_new(messages, message("user", text, n));
        status = cli_prompt_chat(model, t, messages, ids, err);
        json_decref(messages);
    }
    qn_template_close(&t);
    return status;
}

static json_t *result_json(const run_args *a, const cli_answer *answer)
{
    const qn_generate_result *r = &answer->result;
    json_t *o = json_object(), *ids = json_array(), *timings = json_object();
    for (size_t i = 0; i < answer->ids.n; i++) json_array_append_new(ids, json_integer(answer->ids.id[i]));
    json_object_set_new(o, "text", cli_json_text(answer->text, answer->n_text));
    json_object_set_new(o, "ids", ids);
    json_object_set_new(o, "n_prompt", json_integer(r->n_prompt));
    json_object_set_new(o, "n_cached", json_integer(r->n_cached));
    json_object_set_new(o, "n_generated", json_integer(r->n_generated));
    json_object_set_new(o, "finish", json_string(cli_finish_name(r->finish)));
    if (r->stop_index >= 0) json_object_set_new(o, "stop", json_string(a->answer.stop.item[r->stop_index]));
    json_object_set_new(o, "seed", json_integer((json_int_t)answer->seed));
    json_object_set_new(o, "order", json_string(a->sampling.o.order ? a->sampling.o.order : qn_sampler_default_order()));
    if (a->engine.draft) {
        json_t *draft = json_object();
        json_object_set_new(draft, "n_drafted", json_integer(r->n_drafted));
        json_object_set_new(draft, "n_accepted", json_integer(r->n_accepted));
        json_object_set_new(draft, "n_steps", json_integer(r->n_draft_steps));
        json_object_set_new(draft, "gain", json_real(r->draft_gain));
        json_object_set_new(o, "draft", draft);
    }
    json_object_set_new(timings, "prompt_seconds", json_real(r->prompt_seconds));
    json_object_set_new(timings, "first_token_seconds", json_real(r->first_token_seconds));
    json_object_set_new(timings, "generate_seconds", json_real(r->generate_seconds));
    json_object_set_new(timings, "prompt_tokens_per_second", json_real(cli_prompt_rate(r)));
    json_object_set_new(timings, "tokens_per_second", json_real(cli_generate_rate(r)));
    json_object_set_new(o, "timings", timings);
    return o;
}

static int print_json(const run_args *a, const cli_answer *answer)
{
    json_t *o = result_json(a, answer);
    const int bad = json_dumpf(o, stdout, JSON_ENSURE_ASCII) | putchar('\n') | fflush(stdout);
    json_decref(o);
    return bad < 0 ? cli_fault("cannot write to stdout") : CLI_OK;
}

static int answer(const run_args *a, const cli_ids *prompt)
{
    qn_err err = { 0 };
    qn_session *s = NULL;
    cli_answer out = { .stream = a->json ? NULL : stdout };
    qn_status status = qn_session_open(&s, a->engine.engine, &err);
    if (status == QN_OK) status = cli_answer_run(&out, a->engine.model, s, prompt, &a->sampling.o, &a->answer, &err);
    qn_session_close(&s);
    int code = status == QN_OK ? CLI_OK : CLI_FAULT;
    if (!a->json && isatty(STDOUT_FILENO) && out.n_text && out.text[out.n_text - 1] != '\n') putchar('\n');
    fflush(stdout);
    if (status != QN_OK) cli_failed(&err);
    else if (out.write_failed) code = cli_fault("cannot write to stdout");
    else if (a->json) code = print_json(a, &out);
    cli_answer_report_dropped(&out, a->engine.model);
    if (a->stats && status == QN_OK) cli_answer_stats(&out, a->engine.engine, stderr);
    if (code == CLI_OK && out.result.finish == QN_FINISH_CANCELLED) code = CLI_INTERRUPTED;
    cli_answer_free(&out);
    return code;
}

static int run_parsed(run_args *a)
{
    char *text = NULL;
    size_t n = 0;
    qn_err err = { 0 };
    cli_ids prompt = { 0 };
    int code = read_prompt(a, &text, &n);
    if (a->sampling.show_order) cli_sampling_print(&a->sampling.o, stderr);
    if (code < 0) code = cli_model_open(&a->engine);
    if (code < 0 && make_prompt(a, text, n, &prompt, &err) != QN_OK) code = cli_failed(&err);
    free(text);
    if (code < 0) code = cli_engine_open(&a->engine);
    if (code < 0) code = answer(a, &prompt);
    cli_ids_free(&prompt);
    cli_engine_close(&a->engine);
    return code;
}

static int run(int argc, char **argv)
{
    run_args a = { 0 };
    cli_opt opts[] = {
        { CLI_STR, "prompt", 'p', "TEXT", "the prompt", &a.prompt, 0, 0, 0 },
        { CLI_STR, "file", 'f', "FILE",
          "read it from FILE, \"-\" for stdin, to the end (without -p, too, when\npiped); a final newline is left out, except with --raw",
          &a.file, 0, 0, 0 },
        { CLI_STR, "system", 's', "TEXT", "the system's turn before it", &a.system, 0, 0, 0 },
        { CLI_FLAG, "raw", 0, NULL, "continue the text: no template; special tokens in it are parsed", &a.raw, 0, 0, 0 },
        { CLI_INT, "max-tokens", 'n', "N", "tokens at most (default 0: until the context is full)", &a.answer.max_tokens, -1,
          INT32_MAX, 0 },
        { CLI_LIST, "stop", 0, "TEXT", "end before this text; may be given several times", &a.answer.stop, 0, 0, 0 },
        { CLI_LIST, "reverse-prompt", 'r', "TEXT", "the same", &a.answer.stop, 0, 0, 0 },
        { .kind = CLI_TABLE, .target = cli_slide_options(&a.answer) },
        { CLI_FLAG, "ignore-end", 0, NULL, "go on past the model's end tokens", &a.answer.ignore_end, 0, 0, 0 },
        { CLI_FLAG, "special", 0, NULL, "show control tokens in the answer", &a.answer.special, 0, 0, 0 },
        { CLI_FLAG, "json", 0, NULL, "print one object: text, ids, n_prompt, n_cached, n_generated, finish, stop (the text that ended it,\n"
          "if one did), seed, order, timings", &a.json, 0, 0, 0 },
        { CLI_FLAG, "stats", 0, NULL, "first-token time and tokens per second, to stderr", &a.stats, 0, 0, 0 },
        { .kind = CLI_TABLE, .target = cli_engine_options(&a.engine) },
        { .kind = CLI_TABLE, .target = cli_sampling_options(&a.sampling) },
        { 0 },
    };
    int code = cli_parse(argc, argv, "run [-m MODEL] [-p TEXT | -f FILE] [OPTION]...", about, opts);
    if (code >= 0) return code;
    code = cli_sampling_finish(&a.sampling, "run");
    if (code >= 0) return code;
    if (a.prompt && a.file) return cli_usage("run: -p and -f exclude each other");
    if (a.raw && a.system) return cli_usage("run: --raw has no system turn");
    for (int32_t i = 0; i < a.answer.stop.n; i++)
        if (!*a.answer.stop.item[i]) return cli_usage("run: --stop takes a text that is not empty");
    return run_parsed(&a);
}

extern const qn_cmd qn_cmd_run;
const qn_cmd qn_cmd_run = { "run", "answer one prompt, or continue a text", 20, run };

/* A conversation. */
#include "chat.h"
#include "cli_interrupt.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char about[] =
    "Talk to a model; without -m, to the default one. Answers stream as they come. A line is a turn; one that ends in a backslash goes\n"
    "on in the next, and lines of \"\"\" enclose a text of several lines. /help lists the commands of the chat: /clear /system /regen\n"
    "/undo /save /load /stats /exit. Ctrl-C stops an answer; a second one in a row, at the empty prompt, leaves with exit code 130. The\n"
    "end of input (Ctrl-D) leaves. When piped, each line of stdin is a turn or a command, and stdout holds the answers alone, each with a newline\n"
    "after it; the exit code is 1 when a turn was not answered. What was typed is kept in chat_history in the cache folder. With --session\n"
    "the conversation and its evaluated context are in FILE: the next start goes on at once. It is for the same model file and cache format.";

static void greet(const chat *c)
{
    qn_model_info m;
    qn_engine_info e;
    qn_model_get_info(c->engine.model, &m);
    qn_engine_get_info(c->engine.engine, &e);
    const char *slash = strrchr(c->engine.path, '/');
    chat_note("%s, %.0f M parameters, context %d, %d threads, %s\n/help lists the commands; Ctrl-D leaves.",
              slash ? slash + 1 : c->engine.path, (double)m.n_params / 1e6, e.n_ctx, e.n_threads, e.cpu);
}

static void take(chat *c, const char *text, size_t n)
{
    if (strspn(text, " \t\n") == n) return;
    if (text[0] == '/' && text[1] != '/') chat_command(c, text);
    else chat_say(c, text + (text[0] == '/'), n - (text[0] == '/'));
}

/* Turns until the end of input. @return the exit code */
static int converse(chat *c, chat_input *in)
{
    int in_a_row = 0; /* Ctrl-C without a turn between; the one that stopped an answer is the first */
    while (!c->leave) {
        const char *text;
        size_t n;
        const chat_read r = chat_input_read(in, &text, &n);
        if (cli_interrupt_is_end()) return CLI_INTERRUPTED;
        if (r == CHAT_END) break;
        if (r == CHAT_FAULT) return CLI_FAULT;
        in_a_row = r == CHAT_INTERRUPT ? in_a_row + 1 : 0;
        if (r == CHAT_INTERRUPT && (in_a_row > 1 || !c->interactive)) return CLI_INTERRUPTED;
        if (r == CHAT_INTERRUPT) chat_note("(Ctrl-C again leaves; so does Ctrl-D)");
        if (r != CHAT_TEXT) continue;
        take(c, text, n);
        in_a_row = cli_interrupted();
        if ((in_a_row && !c->interactive) || cli_interrupt_is_end()) return CLI_INTERRUPTED;
        cli_interrupt_clear();
    }
    return c->failed && !c->interactive ? CLI_FAULT : CLI_OK;
}

static int open_all(chat *c)
{
    qn_err err = { 0 };
    int code = cli_model_open(&c->engine);
    if (code < 0 && cli_template_open(&c->template_, c->engine.model, &err) != QN_OK) code = cli_failed(&err);
    if (code < 0) code = cli_engine_open(&c->engine);
    if (code < 0 && qn_session_open(&c->session, c->engine.engine, &err) != QN_OK) code = cli_failed(&err);
    if (code < 0 && !(c->messages = json_array())) code = cli_fault("no memory for the conversation");
    return code;
}

static void close_all(chat *c)
{
    json_decref(c->messages);
    qn_session_close(&c->session);
    qn_template_close(&c->template_);
    cli_engine_close(&c->engine);
}

static int run_parsed(chat *c)
{
    /* libedit reads characters as the locale says; a bare environment is taken for UTF-8. Numbers keep their point: LC_CTYPE alone. */
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1) setlocale(LC_CTYPE, "C.UTF-8");
    c->interactive = isatty(STDIN_FILENO);
    c->seed = c->sampling.o.seed;
    cli_interrupt_catch_ends(); /* what was said and typed is kept, and the terminal is left as it was */
    int code = open_all(c);
    if (c->sampling.show_order) cli_sampling_print(&c->sampling.o, stderr);
    if (code < 0) {
        chat_input *in = chat_input_open(c->interactive);
        if (c->interactive) greet(c);
        code = in ? chat_resume(c) : CLI_FAULT;
        if (code < 0) {
            if (c->system || !c->session_path) chat_set_system(c, c->system);
            code = converse(c, in);
            if (c->session_path && !chat_suspend(c)) code = CLI_FAULT;
            else if (c->session_path && c->interactive) chat_note("(kept in %s)", c->session_path);
        }
        chat_input_close(&in);
    }
    close_all(c);
    return code;
}

static int run(int argc, char **argv)
{
    chat c = { 0 };
    cli_opt opts[] = {
        { CLI_STR, "system", 's', "TEXT", "the system's turn at the beginning", &c.system, 0, 0, 0 },
        { CLI_STR, "session", 0, "FILE", "go on with the conversation of FILE, without evaluating it again, and\nkeep it there when leaving",
          &c.session_path, 0, 0, 0 },
        { .kind = CLI_TABLE, .target = cli_slide_options(&c.answer) },
        { CLI_INT, "max-tokens", 'n', "N", "tokens of an answer at most (default 0: until the context is full)",
          &c.answer.max_tokens, -1, INT32_MAX, 0 },
        { CLI_LIST, "stop", 0, "TEXT", "end answers before this text; may be given several times", &c.answer.stop, 0, 0, 0 },
        { CLI_LIST, "reverse-prompt", 'r', "TEXT", "the same", &c.answer.stop, 0, 0, 0 },
        { CLI_FLAG, "stats", 0, NULL, "first-token time and tokens per second after each answer, to stderr", &c.show_stats, 0, 0, 0 },
        { .kind = CLI_TABLE, .target = cli_engine_options(&c.engine) },
        { .kind = CLI_TABLE, .target = cli_sampling_options(&c.sampling) },
        { 0 },
    };
    int code = cli_parse(argc, argv, "chat [-m MODEL] [OPTION]...", about, opts);
    if (code >= 0) return code;
    code = cli_sampling_finish(&c.sampling, "chat");
    if (code >= 0) return code;
    for (int32_t i = 0; i < c.answer.stop.n; i++)
        if (!*c.answer.stop.item[i]) return cli_usage("chat: --stop takes a text that is not empty");
    return run_parsed(&c);
}

extern const qn_cmd qn_cmd_chat;
const qn_cmd qn_cmd_chat = { "chat", "talk to a model", 10, run };

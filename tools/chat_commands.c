/* The commands of the chat. Everything they say goes to stderr. */
#include "chat.h"

#include <stdlib.h>
#include <string.h>

typedef struct command {
    const char *name, *arg, *help;
    bool needs_arg;
    void (*run)(chat *c, const char *arg);
} command;

static void show_help(chat *c, const char *arg);

static void clear(chat *c, const char *arg)
{
    (void)arg;
    char *system = chat_system(c) ? strdup(chat_system(c)) : NULL;
    json_array_clear(c->messages);
    chat_set_system(c, system);
    free(system);
    chat_note("(cleared)");
}

static void system_turn(chat *c, const char *arg)
{
    if (!*arg) {
        chat_note("%s", chat_system(c) ? chat_system(c) : "(there is no system turn)");
        return;
    }
    chat_set_system(c, strcmp(arg, "-") ? arg : NULL);
    chat_note(strcmp(arg, "-") ? "(the system turn is set)" : "(the system turn is gone)");
}

static void regen(chat *c, const char *arg)
{
    (void)arg;
    json_t *before = NULL;
    if (!strcmp(chat_last_role(c), "assistant")) {
        const size_t n = json_array_size(c->messages);
        before = json_incref(json_array_get(c->messages, n - 1));
        chat_drop_last(c);
    }
    if (strcmp(chat_last_role(c), "user")) chat_note("(there is nothing to answer)");
    else if (chat_answer(c)) {
        json_decref(before);
        return;
    }
    if (before) json_array_append_new(c->messages, before); /* no new answer: the old one stays */
}

static void undo(chat *c, const char *arg)
{
    (void)arg;
    bool done = false;
    if (!strcmp(chat_last_role(c), "assistant")) {
        chat_drop_last(c);
        done = true;
    }
    if (!strcmp(chat_last_role(c), "user")) {
        chat_drop_last(c);
        done = true;
    }
    chat_note(done ? "(the last turn is taken back)" : "(there is no turn to take back)");
}

static void stats(chat *c, const char *arg)
{
    (void)arg;
    qn_engine_info info;
    qn_engine_get_info(c->engine.engine, &info);
    if (c->has_last) {
        const cli_answer a = { .result = c->last, .seed = c->last_seed };
        cli_answer_stats(&a, c->engine.engine, stderr);
    }
    chat_note("context       %d of %d tokens, %zu turns; %d threads, level %s", qn_session_position(c->session), info.n_ctx,
              json_array_size(c->messages), info.n_threads, info.cpu);
}

static void leave(chat *c, const char *arg)
{
    (void)arg;
    c->leave = true;
}

static const command commands[] = {
    { "help", "", "this list", false, show_help },
    { "clear", "", "forget the conversation; the system turn stays", false, clear },
    { "system", "[TEXT]", "show the system turn, or set it; \"-\" takes it away", false, system_turn },
    { "regen", "", "answer the last turn again", false, regen },
    { "undo", "", "take back the last turn and its answer", false, undo },
    { "save", "FILE", "write the conversation and the settings to a file", true, chat_save },
    { "load", "FILE", "go on with those of a file", true, chat_load },
    { "stats", "", "speed of the last answer, and how full the context is", false, stats },
    { "exit", "", "leave; so does the end of input (Ctrl-D)", false, leave },
    { "quit", "", "the same", false, leave },
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void show_help(chat *c, const char *arg)
{
    (void)c;
    (void)arg;
    for (int i = 0; i < N_COMMANDS; i++) chat_note("/%-6s %-7s %s", commands[i].name, commands[i].arg, commands[i].help);
    chat_note("\nA line that ends in a backslash goes on in the next; lines of \"\"\" enclose a\n"
              "text of several lines. A text that begins with a slash is written with two.\n"
              "Ctrl-C stops an answer; a second one in a row, at the empty prompt, leaves.");
}

void chat_command(chat *c, const char *line)
{
    const size_t n = strcspn(line + 1, " \t\n");
    const char *arg = line + 1 + n;
    arg += strspn(arg, " \t\n");
    size_t n_arg = strlen(arg);
    while (n_arg && strchr(" \t\n", arg[n_arg - 1])) n_arg--;
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strlen(commands[i].name) != n || memcmp(commands[i].name, line + 1, n) != 0) continue;
        char *trimmed = strndup(arg, n_arg);
        if (!trimmed) chat_note("quern: no memory");
        else if (commands[i].needs_arg && !*trimmed) chat_note("quern: /%s needs a %s", commands[i].name, commands[i].arg);
        else commands[i].run(c, trimmed);
        free(trimmed);
        return;
    }
    cli_fault("there is no command '/%.*s'; /help lists them (a text that begins with a slash is written with two)",
              (int)(n < 40 ? n : 40), line + 1);
    c->failed = true;
}

/* `quern chat --session FILE`: the evaluated context, with the conversation as its note. */
#include "chat.h"
#include "cli_term.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The last turns, so that one sees where the conversation was. */
static void show_end(const chat *c)
{
    const size_t n = json_array_size(c->messages);
    for (size_t i = n > 2 ? n - 2 : 0; i < n; i++) {
        json_t *turn = json_array_get(c->messages, i), *content = json_object_get(turn, "content");
        fprintf(stderr, "%s", strcmp(json_string_value(json_object_get(turn, "role")), "user") ? "" : "> ");
        (void)cli_write_text(stderr, json_string_value(content), json_string_length(content));
        fputc('\n', stderr);
    }
}

int chat_resume(chat *c)
{
    qn_err err = { 0 };
    qn_str note;
    json_error_t e;
    if (!c->session_path) return -1;
    signal(SIGHUP, SIG_IGN); /* a terminal that is closed is the end of input, and what was said is kept */
    if (access(c->session_path, F_OK) != 0) return chat_suspend(c) ? -1 : CLI_FAULT; /* a file that cannot be written is told before one talks */
    if (qn_session_load(c->session, c->session_path, &note, &err) != QN_OK) return cli_failed(&err);
    json_t *o = json_loadb(note.ptr, note.len, JSON_ALLOW_NUL, &e);
    const bool taken = chat_take(c, o, c->session_path, false);
    if (taken) c->n_answers = (uint64_t)json_integer_value(json_object_get(json_object_get(o, "settings"), "n_answers"));
    if (taken && c->interactive) show_end(c);
    json_decref(o);
    return taken ? -1 : CLI_FAULT;
}

bool chat_suspend(chat *c)
{
    qn_err err = { 0 };
    json_t *o = chat_json(c);
    char *text = json_dumps(o, JSON_COMPACT);
    json_decref(o);
    const bool saved = text && qn_session_save(c->session, c->session_path, (qn_str){ text, strlen(text) }, &err) == QN_OK;
    if (!text) cli_fault("no memory for the conversation");
    else if (!saved) cli_failed(&err);
    free(text);
    return saved;
}

/* The turns of a conversation. */
#include "chat.h"
#include "cli_interrupt.h"
#include "cli_term.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void chat_note(const char *fmt, ...)
{
    va_list ap;
    fflush(stdout);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

static json_t *turn_at(const chat *c, size_t i)
{
    return json_array_get(c->messages, i);
}

static const char *role_of(json_t *turn)
{
    const char *role = json_string_value(json_object_get(turn, "role"));
    return role ? role : "";
}

const char *chat_last_role(const chat *c)
{
    const size_t n = json_array_size(c->messages);
    return n ? role_of(turn_at(c, n - 1)) : "";
}

void chat_drop_last(chat *c)
{
    const size_t n = json_array_size(c->messages);
    if (n) json_array_remove(c->messages, n - 1);
}

static json_t *make_turn(const char *role, const char *text, size_t n)
{
    json_t *turn = json_object();
    json_object_set_new(turn, "role", json_string(role));
    json_object_set_new(turn, "content", cli_json_text(text, n));
    return turn;
}

const char *chat_system(const chat *c)
{
    json_t *first = turn_at(c, 0);
    return strcmp(role_of(first), "system") ? NULL : json_string_value(json_object_get(first, "content"));
}

void chat_set_system(chat *c, const char *text)
{
    if (chat_system(c)) json_array_remove(c->messages, 0);
    if (text && *text) json_array_insert_new(c->messages, 0, make_turn("system", text, strlen(text)));
}

/* What to do about a conversation that does not fit. */
static void explain_full(const chat *c)
{
    qn_engine_info info;
    qn_engine_get_info(c->engine.engine, &info);
    chat_note("(the conversation has outgrown the context of %d tokens: /undo takes back the last turn, /clear begins anew, "
              "and --ctx N at the start gives more room)",
              info.n_ctx);
}

static void tell_fault(chat *c, qn_status status, const qn_err *err)
{
    c->failed = true;
    cli_failed(err);
    if (status == QN_ERR_CTX_FULL) explain_full(c);
}

/* The answer ends its line on a terminal and in a pipe alike; a cut is said. */
static void end_answer(chat *c, const cli_answer *a)
{
    const bool ends_line = a->n_text && a->text[a->n_text - 1] == '\n';
    if (!c->interactive || !ends_line) putchar('\n');
    fflush(stdout);
    if (a->result.finish == QN_FINISH_LENGTH) {
        if (c->answer.max_tokens > 0 && a->result.n_generated >= c->answer.max_tokens)
            chat_note("(length: cut at %d tokens)", c->answer.max_tokens);
        else explain_full(c);
    }
    if (c->interactive && a->result.finish == QN_FINISH_CANCELLED) chat_note("(stopped; Ctrl-C again leaves)");
    cli_answer_report_dropped(a, c->engine.model);
    if (c->show_stats) cli_answer_stats(a, c->engine.engine, stderr);
}

static bool keep_answer(chat *c, const cli_answer *a)
{
    c->last = a->result;
    c->last_seed = a->seed;
    c->has_last = true;
    if (c->seed == QN_SEED_RANDOM) c->seed = a->seed;
    c->n_answers++;
    if (a->result.finish == QN_FINISH_CANCELLED && a->n_text == 0) return false; /* stopped before it began: nothing was said */
    json_array_append_new(c->messages, make_turn("assistant", a->text, a->n_text));
    return true;
}

/* The oldest turn of the user's and its answer leave a conversation, which has further ones. @return false: there is nothing to drop */
static bool drop_oldest(chat *c)
{
    const size_t first = chat_system(c) ? 1 : 0;
    if (json_array_size(c->messages) < first + 2) return false;
    for (int i = 0; i < 2 && json_array_size(c->messages) > first + 1; i++) {
        json_t *turn = turn_at(c, first), *content = json_object_get(turn, "content");
        if (i > 0 && !strcmp(role_of(turn), "user")) break;
        fprintf(stderr, "quern: note: the context is full; dropped from the conversation, %s: ", role_of(turn));
        (void)cli_write_text(stderr, json_string_value(content), json_string_length(content));
        fputc('\n', stderr);
        json_array_remove(c->messages, first);
    }
    return true;
}

/* The prompt of the conversation; with --slide, of its end that fits. */
static qn_status make_prompt(chat *c, cli_ids *prompt, qn_err *err)
{
    qn_engine_info info;
    qn_engine_get_info(c->engine.engine, &info);
    for (;;) {
        prompt->n = 0;
        const qn_status status = cli_prompt_chat(c->engine.model, c->template_, c->messages, prompt, err);
        if (status != QN_OK || !c->answer.slide || prompt->n < (size_t)info.n_ctx || !drop_oldest(c)) return status;
    }
}

bool chat_answer(chat *c)
{
    qn_err err = { 0 };
    cli_ids prompt = { 0 };
    cli_answer a = { .stream = stdout };
    qn_sample_opts o = c->sampling.o;
    bool kept = false;
    o.seed = c->seed == QN_SEED_RANDOM ? c->seed : c->seed + c->n_answers;
    qn_status status = make_prompt(c, &prompt, &err);
    if (status == QN_OK) status = cli_answer_run(&a, c->engine.model, c->session, &prompt, &o, &c->answer, &err);
    if (a.n_text || status == QN_OK) end_answer(c, &a);
    if (status != QN_OK) tell_fault(c, status, &err);
    else if (a.write_failed) {
        cli_fault("cannot write to stdout");
        c->failed = c->leave = true;
    } else kept = keep_answer(c, &a);
    cli_answer_free(&a);
    cli_ids_free(&prompt);
    return kept;
}

void chat_say(chat *c, const char *text, size_t n)
{
    json_array_append_new(c->messages, make_turn("user", text, n));
    if (!chat_answer(c)) chat_drop_last(c);
}

/* What the parts of `quern chat` share. */
#ifndef QUERN_CHAT_H
#define QUERN_CHAT_H

#include "cli_answer.h"
#include "cli_common.h"

typedef struct chat {
    cli_engine engine;
    cli_sampling sampling;
    cli_answer_opts answer;
    const char *system;          /* -s, the first system turn                                            */
    const char *session_path;    /* --session, or NULL                                                   */
    bool show_stats;
    qn_template *template_;
    qn_session *session;
    json_t *messages;            /* array of {"role", "content"}                                         */
    uint64_t seed;               /* of the first answer; each further one takes the next, so that /regen
                                    gives another answer and a whole conversation can be had again       */
    uint64_t n_answers;
    qn_generate_result last;     /* counts of the last answer                                            */
    uint64_t last_seed;
    bool has_last;
    bool interactive;            /* stdin is a terminal                                                  */
    bool failed;                 /* a turn was not answered                                              */
    bool leave;                  /* /exit was given                                                      */
} chat;

/* ---- turns (chat_turn.c) ---- */

/** Add the user's turn and answer it. A turn that fails is taken back, after a message. */
void chat_say(chat *c, const char *text, size_t n);
/** Answer the conversation as it stands. @return false after a message; the conversation is as it was */
bool chat_answer(chat *c);
/** Role of the last turn, or "". */
const char *chat_last_role(const chat *c);
/** Take the last turn back. */
void chat_drop_last(chat *c);
/** The system turn's text, or NULL. */
const char *chat_system(const chat *c);
/** NULL or "" takes it away. */
void chat_set_system(chat *c, const char *text);
/** A line on stderr. */
void chat_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- commands (chat_commands.c) ---- */

/** @param line  begins with '/' */
void chat_command(chat *c, const char *line);

/* ---- files (chat_file.c) ---- */

/** The conversation and the settings. */
json_t *chat_json(const chat *c);
/** Go on with those of `o`. @param path  for messages  @return false after one; nothing has changed */
bool chat_take(chat *c, json_t *o, const char *path, bool with_settings);
void chat_save(chat *c, const char *path);
void chat_load(chat *c, const char *path);

/* ---- the session's file (chat_session.c) ---- */

/** Go on where the file of --session ends, if there is one. @return -1 to go on, else the exit code, after a message */
int chat_resume(chat *c);
/** Write it. @return false after a message */
bool chat_suspend(chat *c);

/* ---- input (chat_input.c) ---- */

typedef enum chat_read {
    CHAT_TEXT,
    CHAT_END,          /* end of input                                                                   */
    CHAT_INTERRUPT,    /* Ctrl-C at an empty prompt                                                      */
    CHAT_DROPPED,      /* Ctrl-C on a line with text: the line is gone                                   */
    CHAT_FAULT,        /* nothing more can be read; a message has said why                               */
} chat_read;
typedef struct chat_input chat_input;
/** @return NULL after a message */
chat_input *chat_input_open(bool interactive);
void chat_input_close(chat_input **in);
/** One turn or command: a line; lines that end in a backslash and the one after them; what stands between lines of """.
 *  @param text  out: borrowed until the next read; ends in a NUL that n leaves out */
chat_read chat_input_read(chat_input *in, const char **text, size_t *n);

#endif

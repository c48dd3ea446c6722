/* What the parts of `quern batch` share: a file of requests, a file of results, and a request between the two. */
#ifndef QUERN_BATCH_H
#define QUERN_BATCH_H

#include "cli_common.h"
#include "cli_prompt.h"

#include <jansson.h>

enum { BATCH_MOST_STOPS = CLI_LIST_MAX, BATCH_WHY = 400 };

/* ---- lines ---- */

/** A line of the file of requests that is not empty. */
typedef struct batch_line {
    int32_t number;          /* from 1 on                                                    */
    const char *text;        /* [len] in the file's bytes                                    */
    size_t len;
    uint64_t hash;           /* of the text: tells a request that has changed                */
    char *custom_id;         /* or NULL: it has none, or shares it with an earlier line      */
    int32_t same_as;         /* the earlier line; 0: none                                    */
    bool is_done;            /* the results have it                                          */
    bool has_failed;         /* with an error                                                */
} batch_line;

typedef struct batch_lines {
    char *bytes;
    batch_line *line;        /* [n]                                                          */
    int32_t n;
} batch_lines;

/** Read a file of requests, "-" for stdin, and find which lines go by which name. @return -1 to go on, else the exit code, after a message */
int batch_lines_read(batch_lines *l, const char *path);
void batch_lines_free(batch_lines *l);

/* ---- results ---- */

/** Where results go: appended one by one, each in a single write, so that a kill leaves whole lines and at most one that is torn. */
typedef struct batch_out {
    int fd;
    const char *path;
} batch_out;

/**
 * Open for appending; "-" is stdout. Of a file that is there, a torn last line is cut off, and requests that have their result are marked.
 * A file of anything else, or of other requests, is refused and left as it is.
 * @param path  borrowed  @return -1 to go on, else the exit code, after a message
 */
int batch_out_open(batch_out *o, const char *path, batch_lines *l);
/** @return false after a message */
bool batch_out_write(batch_out *o, json_t *result);
bool batch_out_close(batch_out *o);

/* ---- requests ---- */

/** What a line asks for. */
typedef struct batch_request {
    const batch_line *line;
    bool is_chat;
    json_t *json;            /* texts below are its                                          */
    const char *at_fault;    /* the field that `why` is of, or NULL                          */
    char why[BATCH_WHY];     /* it cannot be done                                            */
    char field[64];          /* at_fault's                                                   */
    json_t *messages;        /* new                                                          */
    json_t *prompt;          /* text or ids; borrowed                                        */
    cli_sampling sampling;
    qn_logit_bias *bias;     /* [n_bias]                                                     */
    int32_t n_bias;
    const char *stop[BATCH_MOST_STOPS];
    int32_t n_stop, max_tokens, n;
    cli_ids ids;             /* the prompt                                                   */
} batch_request;

/**
 * Read a line and make its prompt. @param t  template; may be NULL until a line asks for one  @param max_tokens  where the line has none
 * @return false: `why` says what is wrong
 */
bool batch_request_read(batch_request *r, const batch_line *line, const qn_model *model, qn_template **t, const cli_sampling *defaults,
                        int32_t max_tokens);
void batch_request_free(batch_request *r);

/** Fields of a request; body is the object that holds them. @return false: r->why */
bool batch_fields_read(batch_request *r, json_t *body);
/** Note what is wrong with a field (NULL: with the line). @return false */
bool batch_refuse(batch_request *r, const char *field, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* ---- results as JSON ---- */

typedef struct batch_choice {
    char *text;
    size_t n_text, cap_text;
    qn_generate_result result;
    bool no_memory;
} batch_choice;

/** {"id", "custom_id", "line", "response", "error": null}. NULL without memory. */
json_t *batch_result(const batch_line *line, bool is_chat, const char *model, const batch_choice *choice, int32_t n);
/** The same of one that failed. @param field  at fault, or NULL */
json_t *batch_error(const batch_line *line, const char *code, const char *field, const char *why);

/** What "id" of every result begins with; the line's hash and number follow. */
#define BATCH_ID "batch_req_"

#endif

/* The raw output of a model. */
#include "cli_common.h"
#include "cli_floats.h"
#include "cli_interrupt.h"
#include "cli_out.h"
#include "cli_tokens.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char about[] =
    "Evaluate tokens and write the logits: float32, little-endian, [n][n_vocab], of the last position, or of each with --all. FILE\n"
    "appears when it is whole; \"-\" is stdout. The context is as long as the tokens unless --ctx says otherwise.";

typedef struct logits_args {
    cli_engine engine;
    const char *ids, *prompt, *out;
    bool all;
} logits_args;

/* "1,2,3": numbers from 0, one comma between them. */
static int parse_ids(const char *text, cli_ids *out)
{
    size_t cap = 1;
    for (const char *p = text; *p; p++) cap += *p == ',';
    out->id = malloc(cap * sizeof *out->id);
    if (!out->id) return cli_fault("no memory for %zu ids", cap);
    out->cap = cap;
    for (const char *p = text;;) {
        char *end;
        errno = 0;
        const long v = strtol(p, &end, 10);
        if (end == p || *p < '0' || *p > '9' || errno || v > INT32_MAX || (*end && *end != ','))
            return cli_usage("logits: --ids takes token numbers joined by commas, not '%.40s'", text);
        out->id[out->n++] = (int32_t)v;
        if (!*end) return -1;
        p = end + 1;
    }
}

/* A chunk at a time, so that a long text over a large vocabulary needs no more memory than one. */
static qn_status write_all(qn_session *s, const cli_ids *ids, size_t n_chunk, size_t n_vocab, float *logits, FILE *f, bool *full,
                           qn_err *err)
{
    for (size_t at = 0, n; at < ids->n; at += n) {
        n = ids->n - at < n_chunk ? ids->n - at : n_chunk;
        const qn_status status = qn_session_eval_all(s, ids->id + at, (int32_t)n, logits, err);
        if (status != QN_OK) return status;
        if (!cli_write_floats(f, logits, n * n_vocab)) {
            *full = true;
            return QN_OK;
        }
    }
    return QN_OK;
}

static int write_logits(const logits_args *a, const cli_ids *ids)
{
    qn_err err = { 0 };
    qn_session *s = NULL;
    qn_engine_info engine;
    qn_model_info model;
    cli_out out;
    bool full = false;
    qn_engine_get_info(a->engine.engine, &engine);
    qn_model_get_info(a->engine.model, &model);
    const size_t n_vocab = (size_t)model.n_vocab, rows = a->all ? (size_t)engine.n_chunk : 1;
    float *logits = calloc(rows < ids->n ? rows : ids->n, n_vocab * sizeof *logits);
    if (!logits) return cli_fault("no memory for %zu rows of %zu logits", rows, n_vocab);
    qn_status status = qn_session_open(&s, a->engine.engine, &err);
    cli_interrupt_catch_ends();
    bool open = status == QN_OK && cli_out_open(&out, a->out);
    if (open) {
        cli_interrupt_watch(s);
        if (a->all) status = write_all(s, ids, rows, n_vocab, logits, out.f, &full, &err);
        else status = qn_session_eval(s, ids->id, (int32_t)ids->n, logits, &err);
        cli_interrupt_watch(NULL);
        if (!a->all && status == QN_OK) full = !cli_write_floats(out.f, logits, n_vocab);
    }
    int code = status == QN_ERR_CANCELLED ? CLI_INTERRUPTED : status != QN_OK ? cli_failed(&err) : open ? CLI_OK : CLI_FAULT;
    if (open && full) code = cli_fault("cannot write %s: %s", a->out, strerror(errno));
    if (open && code == CLI_OK && !cli_out_commit(&out)) code = CLI_FAULT;
    if (open && code != CLI_OK) cli_out_abort(&out);
    qn_session_close(&s);
    free(logits);
    return code;
}

static int run(int argc, char **argv)
{
    logits_args a = { 0 };
    cli_opt opts[] = {
        { CLI_STR, "ids", 0, "LIST", "token numbers joined by commas", &a.ids, 0, 0, 0 },
        { CLI_STR, "prompt", 'p', "TEXT", "or text, special tokens added and parsed", &a.prompt, 0, 0, 0 },
        { CLI_FLAG, "all", 0, NULL, "logits of every position", &a.all, 0, 0, 0 },
        { CLI_STR, "output", 'o', "FILE", "where they go", &a.out, 0, 0, 0 },
        { .kind = CLI_TABLE, .target = cli_options_without_drafts(cli_engine_options(&a.engine)) },
        { 0 },
    };
    cli_ids ids = { 0 };
    qn_err err = { 0 };
    int code = cli_parse(argc, argv, "logits [-m MODEL] (--ids LIST | -p TEXT) -o FILE [OPTION]...", about, opts);
    if (code >= 0) return code;
    if (!a.ids == !a.prompt) return cli_usage("logits: give either --ids LIST or -p TEXT");
    if (!a.out) return cli_usage("logits: -o FILE is missing");
    if (a.ids) code = parse_ids(a.ids, &ids);
    if (code < 0) code = cli_model_open(&a.engine);
    if (code < 0) code = cli_out_check(a.out, (const char *[]){ a.engine.path }, 1);
    if (code < 0 && a.prompt && cli_prompt_raw(a.engine.model, a.prompt, strlen(a.prompt), &ids, &err) != QN_OK) code = cli_failed(&err);
    if (code < 0 && (ids.n < 1 || ids.n > INT32_MAX)) code = cli_fault("there are %zu tokens to evaluate", ids.n);
    if (code < 0 && !a.engine.ctx) a.engine.ctx = (int32_t)ids.n;
    if (code < 0) code = cli_engine_open(&a.engine);
    if (code < 0) code = write_logits(&a, &ids);
    cli_ids_free(&ids);
    cli_engine_close(&a.engine);
    return code;
}

extern const qn_cmd qn_cmd_logits;
const qn_cmd qn_cmd_logits = { "logits", "write a model's raw logits", 60, run };

/* quern imatrix: which inputs of a model's matrices matter, from a text. */
#include "cli_common.h"
#include "cli_interrupt.h"
#include "cli_out.h"
#include "cli_prompt.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char about[] =
    "Evaluate a text and write the mean square of every input of the model's matrices: importance data, which 'quern quantize --imatrix'\n"
    "weights errors with. Use the model before it is quantised, and a text of the kind the model will meet; 50 chunks do. The file is a\n"
    "GGUF that llama.cpp reads and writes too.";

typedef struct imatrix_args {
    cli_engine engine;
    const char *file, *out;
    int32_t ctx, chunks;
    bool head, json;
} imatrix_args;

typedef struct watch {
    double began;
} watch;

/* "collecting: 1536 of 21504 tokens, 950 a second, 21 s left" */
static bool progress(void *user, uint64_t done, uint64_t total)
{
    const watch *w = user;
    const bool go_on = !cli_interrupted();
    const double seconds = cli_now() - w->began;
    if (!isatty(STDERR_FILENO)) return go_on;
    if (done >= total || !go_on) fputs("\r\033[K", stderr);
    else if (!done) fprintf(stderr, "\rcollecting: %llu tokens", (unsigned long long)total);
    else
        fprintf(stderr, "\r\033[Kcollecting: %llu of %llu tokens, %.0f a second, %.0f s left", (unsigned long long)done, (unsigned long long)total,
                (double)done / seconds, seconds * (double)(total - done) / (double)done);
    fflush(stderr);
    return go_on;
}

static int print(const imatrix_args *a, const qn_imatrix *m, double seconds)
{
    qn_imatrix_info info;
    qn_imatrix_get_info(m, &info);
    const long long n_tokens = (long long)info.n_chunks * info.chunk_tokens;
    if (!a->json) {
        printf("%s: %lld tensors, %u chunks of %u tokens, %.1f s (%.0f tokens a second)\n", a->out, (long long)info.n_tensors, info.n_chunks,
               info.chunk_tokens, seconds, (double)n_tokens / seconds);
        return CLI_OK;
    }
    json_t *o = json_pack("{s:o, s:o, s:I, s:I, s:I, s:I, s:f}", "file", cli_json_text(a->out, strlen(a->out)), "text",
                          cli_json_text(a->file, strlen(a->file)), "tensors", (json_int_t)info.n_tensors, "chunks", (json_int_t)info.n_chunks,
                          "chunk_tokens", (json_int_t)info.chunk_tokens, "tokens", (json_int_t)n_tokens, "seconds", seconds);
    const bool good = o && json_dumpf(o, stdout, JSON_COMPACT) == 0 && putchar('\n') != EOF;
    json_decref(o);
    return good ? CLI_OK : cli_fault("cannot write to stdout");
}

/* Hours of work are not to end at a name that cannot be written. */
static int check_out(const imatrix_args *a)
{
    cli_out out;
    const int code = cli_out_check(a->out, (const char *[]){ a->file, a->engine.path }, 2);
    if (code >= 0) return code;
    if (!cli_out_open(&out, a->out)) return CLI_FAULT;
    cli_out_abort(&out);
    return -1;
}

static int collect(const imatrix_args *a, const char *text, size_t n)
{
    qn_err err = { 0 };
    qn_imatrix *m = NULL;
    watch w = { cli_now() };
    cli_interrupt_catch_ends();
    const qn_imatrix_opts o = {
        .size = sizeof o, .n_ctx = a->ctx, .n_chunks = a->chunks, .n_threads = a->engine.threads, .cpu = a->engine.cpu, .head = a->head,
        .text_name = a->file, .progress = progress, .progress_user = &w,
    };
    qn_status status = qn_imatrix_collect(&m, a->engine.model, (qn_str){ text, n }, &o, &err);
    const double seconds = cli_now() - w.began;
    if (status == QN_OK) status = qn_imatrix_save(m, a->out, &err);
    if (status == QN_ERR_CANCELLED) cli_fault("stopped by a signal; nothing was written");
    const int code = status == QN_ERR_CANCELLED ? CLI_INTERRUPTED : status != QN_OK ? cli_failed(&err) : print(a, m, seconds);
    qn_imatrix_close(&m);
    return code;
}

static int run(int argc, char **argv)
{
    imatrix_args a = { 0 };
    cli_opt *machine = cli_options_without_drafts(cli_engine_options(&a.engine));
    const char *const not_here[] = { "ctx", "chunk", "kv-memory", "act-bits", "cache", "exact" };
    for (size_t i = 0; i < sizeof not_here / sizeof *not_here; i++) cli_options_without(machine, not_here[i]);
    cli_opt opts[] = {
        { CLI_STR, "file", 'f', "TEXT", "the text; \"-\" is stdin", &a.file, 0, 0, 0 },
        { CLI_STR, "output", 'o', "FILE", "where the data goes", &a.out, 0, 0, 0 },
        { CLI_INT, "ctx", 'c', "N", "tokens of a chunk, each evaluated by itself (default 512)", &a.ctx, 1, INT32_MAX, 0 },
        { CLI_INT, "chunks", 0, "N", "the first N chunks of the text (default: all)", &a.chunks, 1, INT32_MAX, 0 },
        { CLI_FLAG, "process-output", 0, NULL, "data of the output head's matrix too", &a.head, 0, 0, 0 },
        { CLI_FLAG, "json", 0, NULL, "print one object: file, text, tensors, chunks, chunk_tokens, tokens, seconds", &a.json, 0, 0, 0 },
        { .kind = CLI_TABLE, .target = machine },
        { 0 },
    };
    size_t n = 0;
    int code = cli_parse(argc, argv, "imatrix [-m MODEL] -f TEXT -o FILE [OPTION]...", about, opts);
    if (code >= 0) return code;
    if (!a.file) return cli_usage("imatrix: -f TEXT is missing");
    if (!a.out) return cli_usage("imatrix: -o FILE is missing");
    if (!strcmp(a.out, "-")) return cli_usage("imatrix: -o takes a file, as stdout is for the figures");
    char *text = cli_read_all(a.file, &n);
    if (!text) return CLI_FAULT;
    code = cli_model_open(&a.engine);
    if (code < 0) code = check_out(&a);
    if (code < 0) code = collect(&a, text, n);
    free(text);
    cli_engine_close(&a.engine);
    return code;
}

extern const qn_cmd qn_cmd_imatrix;
const qn_cmd qn_cmd_imatrix = { "imatrix", "collect importance data for quantising", 70, run };

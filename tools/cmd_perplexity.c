/* quern perplexity: how well a model predicts a text, and how far it is from the model it was made of. */
#include "cli_common.h"
#include "cli_interrupt.h"
#include "cli_out.h"
#include "cli_prompt.h"
#include "perplexity_eval.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char about[] =
    "Perplexity of a text, with its standard error: the lower, the better the model predicts it. Figures compare with llama-perplexity's: chunks\n"
    "of 512 tokens, the first replaced by BOS where the model wants one, the second half counts, the rest of the text is left out.\n"
    "\n"
    "How much a quantised model has lost, its KL divergence from the original tells better: write the original's probabilities with\n"
    "--kl-base FILE, then compare with --kl FILE, which knows the text. The file takes 2 bytes a position and token of the vocabulary\n"
    "(1.6 GB for 6,000 tokens of Gemma 3), and is llama-perplexity's, either way.";

enum { DEFAULT_CHUNK = 512, LEAST_CHUNK = 4 };

typedef struct perplexity_args {
    cli_engine engine;
    const char *file, *base_out, *base_in;
    int32_t ctx, chunks;
    bool json;
} perplexity_args;

/* The vocabulary puts BOS in front when it does so to no text at all. */
static int bos_of(const qn_model *model, int32_t *bos)
{
    cli_ids none = { 0 };
    qn_err err = { 0 };
    const qn_status status = cli_tokenize(model, (qn_str){ "", 0 }, QN_TOK_SPECIAL, NULL, 0, &none, &err);
    *bos = qn_token_id(model, "bos");
    if (status != QN_OK || none.n == 0 || none.id[0] != *bos) *bos = -1;
    cli_ids_free(&none);
    return status == QN_OK ? -1 : cli_failed(&err);
}

static int tokens_of(const perplexity_args *a, cli_ids *ids)
{
    qn_err err = { 0 };
    size_t n = 0;
    char *text = cli_read_all(a->file, &n);
    if (!text) return CLI_FAULT;
    if (n && text[n - 1] == '\n') n--;  /* as llama.cpp reads a file */
    const qn_status status = cli_tokenize(a->engine.model, (qn_str){ text, n }, QN_TOK_SPECIAL, NULL, 0, ids, &err);
    free(text);
    return status == QN_OK ? -1 : cli_failed(&err);
}

/* The default; the whole of a text that is shorter. */
static uint32_t chunk_of(const char *file, size_t n)
{
    if (n >= DEFAULT_CHUNK || n < LEAST_CHUNK) return n < LEAST_CHUNK ? LEAST_CHUNK : DEFAULT_CHUNK;
    fprintf(stderr, "quern: note: %s has %zu tokens, fewer than a chunk of %d: they are one chunk\n", file, n, DEFAULT_CHUNK);
    return (uint32_t)n;
}

/* What is evaluated, from the text or from the file that is compared with. */
static int choose_chunks(const perplexity_args *a, ppl_base *base, cli_ids *ids, ppl_eval *e)
{
    qn_model_info model;
    qn_model_get_info(a->engine.model, &model);
    if (a->file) {
        const int code = tokens_of(a, ids);
        if (code >= 0) return code;
    }
    if (a->base_in) {
        if (!ppl_base_open(base, a->base_in, model.n_vocab)) return CLI_FAULT;
        if (a->ctx && (uint32_t)a->ctx != base->head.n_ctx)
            return cli_fault("%s was made with chunks of %u tokens, not %d", a->base_in, base->head.n_ctx, a->ctx);
        if (a->file && (ids->n < base->ids.n || memcmp(ids->id, base->ids.id, base->ids.n * sizeof *ids->id) != 0))
            return cli_fault("%s was not made from this text, or with another tokenizer", a->base_in);
        e->head = base->head;
        e->tokens = base->ids.id;
        e->base = base;
    } else {
        e->head = (ppl_head){ a->ctx ? (uint32_t)a->ctx : chunk_of(a->file, ids->n), model.n_vocab, 0 };
        const size_t n = ids->n / e->head.n_ctx;
        if (n == 0) return cli_fault("%s has %zu tokens; one chunk of %u is the least", a->file, ids->n, e->head.n_ctx);
        e->head.n_chunks = n < INT32_MAX ? (int32_t)n : INT32_MAX;
        e->tokens = ids->id;
    }
    if (a->chunks && a->chunks < e->head.n_chunks) e->head.n_chunks = a->chunks;
    return bos_of(a->engine.model, &e->bos);
}

static int print_json(const perplexity_args *a, const ppl_eval *e, const ppl_stats *s)
{
    json_t *o = json_pack("{s:o, s:I, s:I, s:I, s:f, s:f, s:f, s:f}", "model", cli_json_text(a->engine.path, strlen(a->engine.path)), "context",
                          (json_int_t)e->head.n_ctx, "chunks", (json_int_t)e->head.n_chunks, "positions", (json_int_t)s->n, "seconds", e->seconds,
                          "tokens_per_second", (double)e->head.n_ctx * e->head.n_chunks / e->seconds, "perplexity", s->perplexity.value,
                          "perplexity_error", s->perplexity.error);
    json_t *kl = !e->base ? NULL : json_pack(
        "{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "base_perplexity", s->base_perplexity.value, "base_perplexity_error",
        s->base_perplexity.error, "log_ratio", s->log_ratio.value, "log_ratio_error", s->log_ratio.error, "kl_mean", s->kl.value, "kl_mean_error",
        s->kl.error, "kl_median", s->kl_median, "kl_p99", s->kl_p99, "kl_max", s->kl_max, "top1_agreement_percent", s->top1_percent.value,
        "top1_agreement_error", s->top1_percent.error, "dp_rms_percent", s->dp_rms_percent.value, "dp_rms_error", s->dp_rms_percent.error);
    const bool good = o && (!e->base || (kl && json_object_update(o, kl) == 0)) && json_dumpf(o, stdout, JSON_COMPACT) == 0 && putchar('\n') != EOF;
    json_decref(kl);
    json_decref(o);
    return good ? CLI_OK : cli_fault("cannot write to stdout");
}

static int print(const perplexity_args *a, const ppl_eval *e, const ppl_stats *s)
{
    if (a->json) return print_json(a, e, s);
    printf("perplexity         %.4f +- %.4f\n", s->perplexity.value, s->perplexity.error);
    if (e->base) {
        printf("of the base        %.4f +- %.4f\n", s->base_perplexity.value, s->base_perplexity.error);
        printf("ln of the ratio    %.6f +- %.6f\n", s->log_ratio.value, s->log_ratio.error);
        printf("KL divergence      %.6f +- %.6f nats; median %.6f, 99 %% %.6f, largest %.6f\n", s->kl.value, s->kl.error, s->kl_median, s->kl_p99,
               s->kl_max);
        printf("same top token     %.3f +- %.3f %%\n", s->top1_percent.value, s->top1_percent.error);
        printf("change of p, RMS   %.3f +- %.3f %%\n", s->dp_rms_percent.value, s->dp_rms_percent.error);
    }
    printf("over               %zu positions, %d chunks of %u tokens; %.1f s\n", s->n, e->head.n_chunks, e->head.n_ctx, e->seconds);
    return fflush(stdout) == 0 ? CLI_OK : cli_fault("cannot write to stdout");
}

static int report(const perplexity_args *a, const ppl_eval *e, size_t n)
{
    ppl_stats s;
    double *scratch = e->base ? calloc(n, sizeof *scratch) : NULL;
    if (e->base && !scratch) return cli_fault("no memory for %zu positions", n);
    ppl_stats_make(&s, e->points, n, scratch);
    free(scratch);
    if (!isfinite(s.perplexity.value)) return cli_fault("the perplexity is beyond any number: the model does not predict this text");
    return print(a, e, &s);
}

/* The base file has its name before the figures are told. */
static int evaluate(const perplexity_args *a, ppl_eval *e)
{
    cli_out out = { 0 };
    const size_t n = (size_t)e->head.n_chunks * (size_t)ppl_n_rows(e->head.n_ctx);
    e->points = calloc(n, sizeof *e->points);
    if (!e->points) return cli_fault("no memory for %zu positions", n);
    int code = -1;
    cli_interrupt_catch_ends();
    if (a->base_out && !cli_out_open(&out, a->base_out)) code = CLI_FAULT;
    if (code < 0 && a->base_out) {
        e->rows_out = out.f;
        e->rows_path = a->base_out;
        if (!ppl_base_begin(out.f, &e->head, e->tokens)) code = cli_fault("cannot write %s: %s", a->base_out, strerror(errno));
    }
    if (code < 0) code = ppl_eval_run(e);
    if (code < 0 && a->base_out && !cli_out_commit(&out)) code = CLI_FAULT;
    if (code >= 0) cli_out_abort(&out);
    if (code == CLI_INTERRUPTED && a->base_out) cli_fault("stopped by a signal; nothing was written");
    if (code < 0) code = report(a, e, n);
    free(e->points);
    return code;
}

static int run(int argc, char **argv)
{
    perplexity_args a = { 0 };
    cli_opt *machine = cli_options_without(cli_options_without_drafts(cli_engine_options(&a.engine)), "ctx");
    cli_opt opts[] = {
        { CLI_STR, "file", 'f', "TEXT", "the text; \"-\" is stdin. With --kl it may be left out, else it must be the same", &a.file, 0, 0, 0 },
        { CLI_STR, "kl-base", 0, "FILE", "write the model's probabilities, to compare others with", &a.base_out, 0, 0, 0 },
        { CLI_STR, "kl", 0, "FILE", "compare with those of such a file", &a.base_in, 0, 0, 0 },
        { CLI_INT, "ctx", 'c', "N", "tokens of a chunk, each evaluated by itself (default 512; what the file of --kl has)", &a.ctx, LEAST_CHUNK, 1 << 24, 0 },
        { CLI_INT, "chunks", 0, "N", "the first N chunks of the text (default: all)", &a.chunks, 1, INT32_MAX, 0 },
        { CLI_FLAG, "json", 0, NULL, "print one object; divergences are in nats", &a.json, 0, 0, 0 },
        { .kind = CLI_TABLE, .target = machine },
        { 0 },
    };
    int code = cli_parse(argc, argv, "perplexity [-m MODEL] -f TEXT [OPTION]...", about, opts);
    if (code >= 0) return code;
    if (!a.file && !a.base_in) return cli_usage("perplexity: -f TEXT is missing");
    if (a.base_in && a.base_out) return cli_usage("perplexity: --kl-base writes a file and --kl reads one: give one of them");
    if (a.base_out && !strcmp(a.base_out, "-")) return cli_usage("perplexity: --kl-base takes a file, as stdout is for the figures");
    ppl_base base = { 0 };
    ppl_eval e = { .engine = &a.engine };
    cli_ids ids = { 0 };
    code = cli_model_open(&a.engine);
    if (code < 0) code = cli_out_check(a.base_out, (const char *[]){ a.file, a.engine.path }, 2);
    if (code < 0) code = choose_chunks(&a, &base, &ids, &e);
    if (code < 0) {
        a.engine.ctx = (int32_t)e.head.n_ctx;
        code = cli_engine_open(&a.engine);
    }
    if (code < 0) code = evaluate(&a, &e);
    ppl_base_close(&base);
    cli_ids_free(&ids);
    cli_engine_close(&a.engine);
    return code;
}

extern const qn_cmd qn_cmd_perplexity;
const qn_cmd qn_cmd_perplexity = { "perplexity", "how well a model predicts a text, and what quantising cost", 72, run };

/* Texts to vectors, or to a classifier's scores. */
#include "cli_interrupt.h"
#include "embed.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char about[] =
    "Embeddings of texts: of the arguments, or of the lines of a file or of stdin. A line of numbers for each text goes to stdout, in order. Texts are "
    "evaluated side by side, however many there are; no vector depends on the others. Models with a classifier score pairs: --query TEXT with "
    "documents in the place of texts, the higher the better (logits; of Qwen 3 Reranker the probabilities of yes and no). With --jsonl a line is "
    "JSON: a string, an array of token ids, or an object with \"text\" and, for a pair, \"query\". What a model wants in front of a text (\"query: \", "
    "\"search_document: \", an instruction) is part of the text: its card says what, and --prefix puts it there.";

/* Results that are in memory at a time: tokens, and texts. */
enum { SLAB_TOKENS = 8192, SLAB_TEXTS = 512, LEAST_CTX = 512, KV_POSITIONS = 2048 };

typedef struct embed_args {
    cli_engine engine;
    cli_rest rest;
    const char *file, *pooling_name, *output, *query, *prefix;
    bool jsonl, json, raw, similarity, no_normalize, truncate, parse_special;
    /* what they come to */
    qn_pooling pooling;
    qn_model_info info;
    embed_texts texts;
    embed_out out;
    double began;
    uint64_t n_tokens, n_done; /* for who watches */
    bool is_shown;
} embed_args;

/* ---- for who watches: nothing in the first second ---- */

static void hide_progress(embed_args *a)
{
    if (a->is_shown) (void)cli_progress((void *)"embedding", 1, 1);
    a->is_shown = false;
}

static bool on_progress(void *user, uint64_t done, uint64_t total)
{
    embed_args *a = user;
    const uint64_t all = a->n_done + done;
    if (cli_now() - a->began > 1 && done < total && all < a->n_tokens) {
        a->is_shown = true;
        (void)cli_progress((void *)"embedding", all, a->n_tokens);
    }
    return !cli_interrupted();
}

/* ---- some texts at a time ---- */

static int32_t rows_of(const embed_args *a, const embed_text *x)
{
    return a->pooling == QN_POOLING_NONE ? (int32_t)x->ids.n : 1;
}

/* Texts from i on that make a slab, and the rows of their results. */
static int32_t slab(const embed_args *a, int32_t i, size_t *n_rows)
{
    int32_t n = 0;
    size_t n_tokens = 0;
    *n_rows = 0;
    for (; i + n < a->texts.n && n < SLAB_TEXTS && (n == 0 || n_tokens < SLAB_TOKENS); n++) {
        n_tokens += a->texts.text[i + n].ids.n;
        *n_rows += (size_t)rows_of(a, &a->texts.text[i + n]);
    }
    return n;
}

/* Texts [i, i + n) into x. @return -1 to go on, else the exit code */
static int evaluate(embed_args *a, int32_t i, int32_t n, float *x)
{
    qn_err err = { 0 };
    qn_embed_text *t = calloc((size_t)n, sizeof *t);
    if (!t) return cli_fault("no memory for %d texts", n);
    uint64_t n_tokens = 0;
    for (int32_t k = 0; k < n; k++) {
        const embed_text *from = &a->texts.text[i + k];
        t[k] = (qn_embed_text){ from->ids.id, (int32_t)from->ids.n, from->n_first };
        n_tokens += from->ids.n;
    }
    const qn_embed_opts o = { .size = sizeof o, .pooling = a->pooling, .unit_length = !a->no_normalize || a->similarity, .progress = on_progress,
                              .progress_user = a };
    const qn_status status = qn_engine_embed(a->engine.engine, t, n, &o, x, &err);
    free(t);
    a->n_done += n_tokens;
    hide_progress(a);
    return status == QN_OK ? -1 : status == QN_ERR_CANCELLED ? CLI_INTERRUPTED : cli_failed(&err);
}

static void write_slab(embed_args *a, int32_t i, int32_t n, float *x)
{
    for (int32_t k = 0; k < n; k++) {
        const embed_text *t = &a->texts.text[i + k];
        const int32_t n_rows = rows_of(a, t);
        embed_out_result(&a->out, x, n_rows, t->ids.n);
        x += (size_t)n_rows * (size_t)a->out.width;
    }
}

static int embed_all(embed_args *a)
{
    int code = -1;
    size_t n_rows;
    for (int32_t i = 0, n; i < a->texts.n && code < 0; i += n) {
        n = slab(a, i, &n_rows);
        float *x = calloc(n_rows, (size_t)a->out.width * sizeof *x);
        if (!x) return cli_fault("no memory for %zu vectors", n_rows);
        code = evaluate(a, i, n, x);
        if (code < 0) write_slab(a, i, n, x);
        free(x);
        if (code < 0 && ferror(a->out.file.f)) return -1; /* closing it tells */
    }
    return code;
}

static int compare_all(embed_args *a)
{
    const size_t width = (size_t)a->out.width;
    float *x = calloc((size_t)a->texts.n, width * sizeof *x);
    int code = x ? -1 : cli_fault("no memory for %d vectors", a->texts.n);
    size_t n_rows;
    for (int32_t i = 0, n; i < a->texts.n && code < 0; i += n) {
        n = slab(a, i, &n_rows);
        code = evaluate(a, i, n, x + (size_t)i * width);
    }
    a->out.n_tokens = a->n_done;
    if (code < 0) embed_out_similarity(&a->out, x, a->texts.n);
    free(x);
    return code;
}

/* ---- getting ready ---- */

static int choose_pooling(embed_args *a)
{
    if (!a->pooling_name) a->pooling = a->query ? QN_POOLING_RANK : a->info.pooling;
    if (a->pooling == QN_POOLING_RANK && !a->info.n_labels)
        return cli_fault("%s has no classifier (a tensor cls.output.weight), so that it has embeddings and no scores%s", a->engine.path,
                         a->pooling_name || a->query ? "" : "; the file asks for scores, --pooling chooses another way");
    if (a->pooling == QN_POOLING_RANK && a->similarity) return cli_usage("embed: --similarity compares embeddings, and pooling 'rank' gives scores");
    if (a->pooling != QN_POOLING_RANK && a->query) return cli_usage("embed: --query asks for scores, and --pooling %s for embeddings", a->pooling_name);
    return -1;
}

/* As few positions as the texts need, so that the cache is small; some texts side by side. */
static int open_engine(embed_args *a)
{
    cli_engine *e = &a->engine;
    const int32_t trained = a->info.n_ctx_train > 0 ? a->info.n_ctx_train : INT32_MAX, most = e->ctx ? e->ctx : trained;
    const int code = embed_texts_fit(&a->texts, e->model, most, a->truncate);
    if (code >= 0) return code;
    size_t longest = LEAST_CTX;
    for (int32_t i = 0; i < a->texts.n; i++) {
        const size_t n = a->texts.text[i].ids.n;
        if (n > longest) longest = n;
        a->n_tokens += n;
    }
    e->ctx = longest < (size_t)most ? (int32_t)longest : most;
    e->parallel = e->ctx < KV_POSITIONS ? KV_POSITIONS / e->ctx : 1;
    if (e->parallel > KV_POSITIONS / LEAST_CTX) e->parallel = KV_POSITIONS / LEAST_CTX;
    return cli_engine_open(e);
}

static int read_texts(embed_args *a)
{
    int code = a->rest.n ? embed_texts_of_arguments(&a->texts, &a->rest) : embed_texts_of_file(&a->texts, a->file ? a->file : "-", a->jsonl);
    if (code < 0 && a->texts.n == 0) code = cli_fault("there is no text in %s", a->file && strcmp(a->file, "-") != 0 ? a->file : "stdin");
    if (code < 0 && a->similarity && a->texts.n < 2) code = cli_usage("embed: --similarity compares texts: give at least two");
    if (code < 0 && a->prefix) code = embed_texts_add_prefix(&a->texts, a->prefix);
    if (code < 0 && a->query) code = embed_texts_add_query(&a->texts, a->query);
    return code;
}

static int write_all(embed_args *a)
{
    const bool is_rank = a->pooling == QN_POOLING_RANK;
    a->out.form = a->json ? EMBED_JSON : a->raw ? EMBED_RAW : EMBED_TEXT;
    a->out.model = a->info.name;
    a->out.pooling = a->pooling;
    a->out.normalized = !a->no_normalize || a->similarity;
    a->out.width = is_rank ? a->info.n_labels : a->info.n_embd;
    const int same = cli_out_check(a->output, (const char *[]){ a->file, a->engine.path }, 2);
    if (same >= 0) return same;
    cli_interrupt_catch_ends();
    if (!cli_out_open(&a->out.file, a->output)) return CLI_FAULT;
    embed_out_begin(&a->out);
    a->began = cli_now();
    const int code = a->similarity ? compare_all(a) : embed_all(a);
    if (code >= 0) {
        cli_out_abort(&a->out.file);
        return code;
    }
    embed_out_end(&a->out);
    return cli_out_commit(&a->out.file) ? CLI_OK : CLI_FAULT;
}

static int run_parsed(embed_args *a)
{
    int code = read_texts(a);
    if (code < 0) code = cli_model_open(&a->engine);
    if (code >= 0) return code;
    qn_model_get_info(a->engine.model, &a->info);
    code = choose_pooling(a);
    if (code < 0) code = embed_texts_tokenize(&a->texts, a->engine.model, a->parse_special);
    if (code < 0) code = open_engine(a);
    return code < 0 ? write_all(a) : code;
}

/* The first argument is the model, unless -m names it. @return -1 to go on */
static int check_args(embed_args *a)
{
    const char *name = a->pooling_name;
    a->pooling = QN_POOLING_NONE;
    while (name && a->pooling < QN_POOLING_MODEL && strcmp(name, embed_pooling_name(a->pooling)) != 0) a->pooling++;
    if (a->pooling == QN_POOLING_MODEL) return cli_usage("embed: --pooling takes none, mean, cls, last or rank, not '%s'", name);
    if (!a->engine.model_arg && a->rest.n) {
        a->engine.model_arg = *a->rest.item++;
        a->rest.n--;
    }
    if (!a->engine.model_arg) return cli_usage("embed: no model; 'quern embed --help' explains");
    if (a->rest.n && a->file) return cli_usage("embed: texts come as arguments or from -f, not both");
    if (a->rest.n && a->jsonl) return cli_usage("embed: --jsonl is of lines: of -f FILE or of stdin");
    if (a->json && a->raw) return cli_usage("embed: --json and --raw do not go together");
    if (a->similarity && a->raw) return cli_usage("embed: --similarity and --raw do not go together");
    if (a->similarity && a->pooling_name && a->pooling == QN_POOLING_NONE)
        return cli_usage("embed: --similarity compares one vector a text, and pooling 'none' gives one a token");
    if (a->raw && !strcmp(a->output, "-") && isatty(STDOUT_FILENO)) return cli_usage("embed: --raw is no text for a terminal: give -o FILE, or a pipe");
    if (!a->rest.n && !a->file && isatty(STDIN_FILENO)) return cli_usage("embed: no texts: give them as arguments, -f FILE, or pipe them in");
    return -1;
}

static cli_opt *machine_options(cli_engine *e)
{
    static const char *const own[] = { "ctx", "kv-memory", "model" };
    cli_opt *t = cli_options_without_drafts(cli_engine_options(e));
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) t = cli_options_without(t, own[i]);
    return t;
}

static int run(int argc, char **argv)
{
    embed_args a = { .output = "-" };
    cli_opt opts[] = {
        { .kind = CLI_REST, .name = "text", .target = &a.rest },
        { CLI_STR, "model", 'm', "MODEL", "in the place of the first argument", &a.engine.model_arg, 0, 0, 0 },
        { CLI_STR, "file", 'f', "FILE", "one text a line (\"-\": stdin, which is the default without texts)", &a.file, 0, 0, 0 },
        { CLI_FLAG, "jsonl", 0, NULL, "the lines are JSON", &a.jsonl, 0, 0, 0 },
        { CLI_STR, "prefix", 0, "TEXT", "put in front of every text", &a.prefix, 0, 0, 0 },
        { CLI_STR, "pooling", 0, "HOW", "of the tokens' vectors one: mean, cls (the first), last; rank: the classifier's scores; none: a vector for each\n"
          "token (default: what the file says; else mean for encoders, last for others)", &a.pooling_name, 0, 0, 0 },
        { CLI_STR, "query", 'q', "TEXT", "score how well each text answers this one (pooling rank)", &a.query, 0, 0, 0 },
        { CLI_FLAG, "no-normalize", 0, NULL, "vectors as the model gives them; else their length is 1", &a.no_normalize, 0, 0, 0 },
        { CLI_FLAG, "similarity", 0, NULL, "cosine similarities instead: one number of two texts, a matrix of more", &a.similarity, 0, 0, 0 },
        { CLI_FLAG, "truncate", 0, NULL, "cut a text that is longer than the context; else that is an error", &a.truncate, 0, 0, 0 },
        { CLI_FLAG, "parse-special", 0, NULL, "the names of control tokens in texts become those tokens", &a.parse_special, 0, 0, 0 },
        { CLI_FLAG, "json", 0, NULL, "a JSON object of the form of OpenAI's embeddings", &a.json, 0, 0, 0 },
        { CLI_FLAG, "raw", 0, NULL, "float32, little-endian, vector after vector", &a.raw, 0, 0, 0 },
        { CLI_STR, "output", 'o', "FILE", "where the result goes (default: stdout)", &a.output, 0, 0, 0 },
        { CLI_INT, "ctx", 'c', "N", "most tokens of a text (default: as trained)", &a.engine.ctx, 1, INT32_MAX, 0 },
        { .kind = CLI_TABLE, .target = machine_options(&a.engine) },
        { 0 },
    };
    const char **item = calloc((size_t)argc, sizeof *item);
    if (!item) return cli_fault("no memory for the arguments");
    a.rest.item = item;
    int code = cli_parse(argc, argv, "embed MODEL [TEXT]... [OPTION]...", about, opts);
    if (code < 0) code = check_args(&a);
    if (code < 0) code = run_parsed(&a);
    hide_progress(&a);
    embed_texts_free(&a.texts);
    cli_engine_close(&a.engine);
    free(item);
    return code;
}

extern const qn_cmd qn_cmd_embed;
const qn_cmd qn_cmd_embed = { "embed", "turn texts into vectors, or score them", 27, run };

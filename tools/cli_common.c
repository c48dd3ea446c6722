#include "cli_common.h"

#include "cli_interrupt.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int cli_failed(const qn_err *err)
{
    return cli_fault("%s", err->text);
}

/* ---- model and engine ---- */

cli_opt *cli_engine_options(cli_engine *e)
{
    const cli_opt t[] = {
        { .kind = CLI_HEAD, .help = "Model and machine" },
        { CLI_STR, "model", 'm', "MODEL", "a GGUF file, or how one in the cache begins (default: SmolLM2)", &e->model_arg, 0, 0, 0 },
        { CLI_INT, "threads", 't', "N", "threads (default: the physical cores this process may use)", &e->threads, 1, 512, 0 },
        { CLI_INT, "ctx", 'c', "N", "positions of the context (default: as trained, at most 4096)", &e->ctx, 1, INT32_MAX, 0 },
        { CLI_INT, "chunk", 0, "N", "prompt tokens a step, 1 to 4096 (default 512)", &e->chunk, 1, 4096, 0 },
        { CLI_SIZE, "kv-memory", 0, "SIZE", "memory of the KV cache, as 500M or 2GiB (default: what the context takes); what is left over keeps earlier texts",
          &e->kv_memory, 0, 0, 0 },
        { CLI_STR, "cpu", 0, "LEVEL", "highest instruction set to use; 'quern version' lists them", &e->cpu, 0, 0, 0 },
        { CLI_INT, "act-bits", 0, "8|16", "of activations: 16 keeps float32's choices (default), 8 reads prompts faster", &e->act_bits, 0, INT32_MAX, 0 },
        { .kind = CLI_TABLE, .name = "cache", .target = cli_cache_options(&e->cache) },
        { CLI_FLAG, "exact", 0, NULL, "only numerics that are the same, bit for bit, on every level", &e->exact, 0, 0, 0 },
        { CLI_STR, "draft", 0, "DRAFT", "propose tokens and keep those that the model chooses, too: the same text, sooner. \"ngram\": what followed\n"
          "in the text before; \"self:TYPE\": the model itself, quantised (self:Q4_0); else a small model of the\nsame vocabulary", &e->draft, 0, 0, 0 },
        { CLI_INT, "draft-max", 0, "N", "tokens in a draft, 1 to 16 (default 8); fewer where they do not pay", &e->draft_max, 1, 16, 0 },
        { 0 },
    };
    _Static_assert(sizeof t <= sizeof e->opt, "room for the table");
    memcpy(e->opt, t, sizeof t);
    return e->opt;
}

cli_opt *cli_options_without(cli_opt *table, const char *name)
{
    cli_opt *o = table;
    while (o->kind && (!o->name || strcmp(o->name, name) != 0)) o++;
    for (; o->kind; o++) o[0] = o[1];
    return table;
}

cli_opt *cli_options_without_drafts(cli_opt *table)
{
    return cli_options_without(cli_options_without(table, "draft"), "draft-max");
}

int cli_level_check(const char *cpu)
{
    const char *names[16];
    char list[256] = "";
    const int32_t n = qn_cpu_levels(names, 16);
    for (int32_t i = 0; i < n && i < 16; i++) {
        if (!cpu || !strcmp(cpu, names[i])) return -1;
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", names[i]);
    }
    return cpu ? cli_usage("--cpu takes a level that this CPU runs (%s), not '%s'", list, cpu) : -1;
}

cli_opt *cli_cache_options(cli_cache *c)
{
    const cli_opt t[] = {
        { CLI_STR, "cache-type", 0, "TYPE",
          "of keys and values: F32, F16, BF16, Q8_0\n(half of F16), Q4_0 (a quarter); default: F16,\nor F32 where a model needs it",
          &c->both, 0, 0, 0 },
        { CLI_STR, "cache-type-k", 0, "TYPE", "of keys alone", &c->k, 0, 0, 0 },
        { CLI_STR, "cache-type-v", 0, "TYPE", "of values alone", &c->v, 0, 0, 0 },
        { 0 },
    };
    _Static_assert(sizeof t <= sizeof c->opt, "room for the table");
    memcpy(c->opt, t, sizeof t);
    return c->opt;
}

int cli_cache_check(cli_cache *c)
{
    const char *names[16], *asked[] = { c->both, c->k, c->v };
    static const char *const option[] = { "--cache-type", "--cache-type-k", "--cache-type-v" };
    const int32_t n = qn_cache_types(names, 16);
    char list[256] = "";
    for (int32_t i = 0; i < n && i < 16; i++) snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", names[i]);
    for (int32_t a = 0; a < 3; a++) {
        int32_t i = 0;
        while (asked[a] && i < n && i < 16 && strcasecmp(asked[a], names[i]) != 0) i++;
        if (asked[a] && (i == n || i == 16)) return cli_usage("%s takes %s, not '%s'", option[a], list, asked[a]);
    }
    if (!c->k) c->k = c->both;
    if (!c->v) c->v = c->both;
    return -1;
}

void cli_note(void *user, const char *text)
{
    (void)user;
    fprintf(stderr, "quern: note: %s\n", text);
}

int cli_model_open(cli_engine *e)
{
    qn_err err = { 0 };
    const int level = cli_level_check(e->cpu), cache = cli_cache_check(&e->cache);
    if (level >= 0) return level;
    if (cache >= 0) return cache;
    if (e->act_bits != 0 && e->act_bits != 8 && e->act_bits != 16) return cli_usage("--act-bits takes 8 or 16, not %d", e->act_bits);
    if (!cli_model_path(e->model_arg, e->path)) return CLI_FAULT;
    cli_interrupt_catch();
    const qn_model_opts o = { .size = sizeof o, .n_threads = e->threads, .progress = cli_progress, .progress_user = (void *)"loading", .log = cli_note };
    const qn_status status = qn_model_open(&e->model, e->path, &o, &err);
    if (status == QN_ERR_CANCELLED) return CLI_INTERRUPTED;
    return status == QN_OK ? -1 : cli_failed(&err);
}

/* The model that drafts, if one does. */
static int open_draft(cli_engine *e)
{
    qn_err err = { 0 };
    char path[4096];
    const bool is_self = e->draft && !strncmp(e->draft, "self:", 5);
    if (!e->draft || e->draft_model || !strcmp(e->draft, "ngram")) return -1;
    if (!is_self && !cli_model_path(e->draft, path)) return CLI_FAULT;
    const qn_model_opts o = { .size = sizeof o, .n_threads = e->threads, .progress = cli_progress, .progress_user = (void *)"loading the draft",
                              .quantize = is_self ? e->draft + 5 : NULL };
    const qn_status status = qn_model_open(&e->draft_model, is_self ? e->path : path, &o, &err);
    return status == QN_OK ? -1 : status == QN_ERR_CANCELLED ? CLI_INTERRUPTED : cli_failed(&err);
}

int cli_engine_open(cli_engine *e)
{
    qn_err err = { 0 };
    const int code = open_draft(e);
    if (code >= 0) return code;
    const qn_engine_opts o = {
        .size = sizeof o, .n_threads = e->threads, .n_ctx = e->ctx, .n_chunk = e->chunk, .cpu = e->cpu, .exact = e->exact,
        .profile = e->profile, .act_bits = e->act_bits, .n_sessions = e->parallel, .kv_memory = e->kv_memory,
        .cache_type_k = e->cache.k, .cache_type_v = e->cache.v,
        .draft_model = e->draft_model, .draft_ngram = e->draft && !strcmp(e->draft, "ngram"), .draft_max = e->draft_max,
    };
    return qn_engine_open(&e->engine, e->model, &o, &err) == QN_OK ? -1 : cli_failed(&err);
}

void cli_engine_close(cli_engine *e)
{
    qn_engine_close(&e->engine);
    qn_model_close(&e->draft_model);
    qn_model_close(&e->model);
}

/* ---- sampling ---- */

cli_opt *cli_sampling_options(cli_sampling *s)
{
    qn_sample_opts *o = &s->o;
    qn_sample_opts_init(o);
    const cli_opt t[] = {
        { .kind = CLI_HEAD, .help = "Sampling (0 is off, except where another value is named)" },
        { CLI_FLOAT, "temp", 0, "T", "temperature (default 0.8); 0: always the most probable token", &o->temperature, 0, 1e6, 0 },
        { CLI_U64, "seed", 0, "S", "start of the random stream (default: drawn anew; --stats and --json tell it)", &o->seed, 0, 0, 0 },
        { CLI_INT, "top-k", 0, "K", "keep the K most probable (default 40)", &o->top_k, 0, INT32_MAX, 0 },
        { CLI_FLOAT, "top-p", 0, "P", "keep the most probable that make up P together (default 0.95; 1: off)", &o->top_p, 0, 1, 0 },
        { CLI_FLOAT, "min-p", 0, "P", "keep those at least P times as probable as the best (default 0.05)", &o->min_p, 0, 1, 0 },
        { CLI_FLOAT, "typical", 0, "P", "locally typical sampling (default 1: off)", &o->typical_p, 0, 1, 0 },
        { CLI_FLOAT, "top-n-sigma", 0, "N", "keep logits within N standard deviations of the best", &o->top_n_sigma, 0, 1e6, 0 },
        { CLI_FLOAT, "xtc-probability", 0, "P", "chance to drop all top choices but the last", &o->xtc_probability, 0, 1, 0 },
        { CLI_FLOAT, "xtc-threshold", 0, "P", "what makes a top choice (default 0.1; above 0.5: off)", &o->xtc_threshold, 0, 1, 0 },
        { CLI_FLOAT, "dyn-temp-range", 0, "R", "let entropy move the temperature by up to R", &o->dyn_temp_range, 0, 1e6, 0 },
        { CLI_FLOAT, "dyn-temp-exponent", 0, "E", "how (default 1)", &o->dyn_temp_exponent, 0, 100, 0 },
        { CLI_FLOAT, "repeat-penalty", 0, "X", "divide the logits of tokens seen (default 1: off)", &o->repeat_penalty, 0, 1e6, 0 },
        { CLI_FLOAT, "frequency-penalty", 0, "X", "lower them by X for each time", &o->frequency_penalty, -1e6, 1e6, 0 },
        { CLI_FLOAT, "presence-penalty", 0, "X", "lower them by X once", &o->presence_penalty, -1e6, 1e6, 0 },
        { CLI_INT, "penalty-last-n", 0, "N", "last tokens that count as seen, the prompt's too (default 64; -1: all)",
          &o->penalty_last_n, -1, INT32_MAX, 0 },
        { CLI_FLOAT, "dry-multiplier", 0, "X", "penalty on what continues a repetition", &o->dry_multiplier, 0, 1e6, 0 },
        { CLI_FLOAT, "dry-base", 0, "X", "its growth by token (default 1.75)", &o->dry_base, 1, 1e6, 0 },
        { CLI_INT, "dry-allowed-length", 0, "N", "repetition that costs nothing yet (default 2)", &o->dry_allowed_length, 0, INT32_MAX, 0 },
        { CLI_INT, "dry-last-n", 0, "N", "tokens it looks back on (default -1: all)", &o->dry_last_n, -1, INT32_MAX, 0 },
        { CLI_LIST, "dry-breaker", 0, "TEXT", "text that ends a repetition; may be given several times\n(default: newline, colon, double quote, star)",
          &s->breakers, 0, 0, 0 },
        { CLI_INT, "mirostat", 0, "2", "mirostat 2, in place of all that cuts", &o->mirostat, 0, 2, 0 },
        { CLI_FLOAT, "mirostat-tau", 0, "X", "the surprise it aims at, in bits (default 5)", &o->mirostat_tau, 0, 1e3, 0 },
        { CLI_FLOAT, "mirostat-eta", 0, "X", "how fast it learns (default 0.1)", &o->mirostat_eta, 0, 1e3, 0 },
        { CLI_LIST, "logit-bias", 0, "ID=V", "add V to the logit of a token; -inf bans it; may be given several times",
          &s->bias_text, 0, 0, 0 },
        { CLI_STR, "order", 0, "NAMES", "samplers in the order they act, joined by ';' (default: all of penalties, dry, top_n_sigma, top_k,\n"
          "typical_p, top_p, min_p, xtc, temperature)", &o->order, 0, 0, 0 },
        { CLI_FLAG, "show-order", 0, NULL, "print the order and the values in use to stderr", &s->show_order, 0, 0, 0 },
        { 0 },
    };
    _Static_assert(sizeof t <= sizeof s->opt, "room for the table");
    memcpy(s->opt, t, sizeof t);
    return s->opt;
}

static bool parse_bias(const char *text, qn_logit_bias *out)
{
    char *end;
    const long id = strtol(text, &end, 10);
    if (end == text || *end != '=' || id < 0 || id > INT32_MAX || !end[1]) return false;
    const double v = strtod(end + 1, &end);
    if (*end || isnan(v) || v > FLT_MAX || (isfinite(v) && v < -FLT_MAX)) return false;
    *out = (qn_logit_bias){ (int32_t)id, (float)v };
    return true;
}

/* Each name must be one of the default order's, once. */
static bool order_is_good(const char *order, const char **at, size_t *len)
{
    const char *all = qn_sampler_default_order();
    for (const char *p = order; *p;) {
        *at = p;
        *len = strcspn(p, ";");
        bool known = false;
        for (const char *q = all; *q && !known; q += strcspn(q, ";"), q += *q == ';')
            known = strcspn(q, ";") == *len && !memcmp(q, p, *len);
        for (const char *q = order; q < p && known; q += strcspn(q, ";"), q += *q == ';')
            known = strcspn(q, ";") != *len || memcmp(q, p, *len) != 0;
        if (!known) return false;
        p += *len;
        if (*p == ';' && !*++p) {
            *at = p;
            *len = 0;
            return false;
        }
    }
    return true;
}

int cli_sampling_finish(cli_sampling *s, const char *cmd)
{
    const char *at;
    size_t len;
    for (int32_t i = 0; i < s->bias_text.n; i++)
        if (!parse_bias(s->bias_text.item[i], &s->bias[i]))
            return cli_usage("%s: --logit-bias takes ID=NUMBER, not '%s'", cmd, s->bias_text.item[i]);
    if (s->o.mirostat == 1) return cli_usage("%s: --mirostat takes 0 or 2", cmd);
    if (s->o.order && !order_is_good(s->o.order, &at, &len))
        return cli_usage("%s: --order: '%.*s' is unknown or named twice; there are %s", cmd, (int)len, at, qn_sampler_default_order());
    for (int32_t i = 0; i < s->breakers.n; i++)
        if (!*s->breakers.item[i]) return cli_usage("%s: --dry-breaker takes a text that is not empty", cmd);
    s->o.bias = s->bias;
    s->o.n_bias = s->bias_text.n;
    s->o.dry_breakers = s->breakers.n ? s->breakers.item : NULL;
    s->o.n_dry_breakers = s->breakers.n;
    return -1;
}

/* How far back, as text. */
static const char *span(int32_t n, char out[32])
{
    if (n < 0) return "all tokens";
    snprintf(out, 32, "the last %d tokens", n);
    return out;
}

void cli_sampling_print(const qn_sample_opts *o, FILE *f)
{
    char text[32];
    fprintf(f, "order              %s\n", o->order ? o->order : qn_sampler_default_order());
    fprintf(f, "penalties          repeat %g, frequency %g, presence %g, over %s\n", (double)o->repeat_penalty,
            (double)o->frequency_penalty, (double)o->presence_penalty, span(o->penalty_last_n, text));
    fprintf(f, "dry                multiplier %g, base %g, allowed %d, over %s\n", (double)o->dry_multiplier, (double)o->dry_base,
            o->dry_allowed_length, span(o->dry_last_n, text));
    fprintf(f, "top_n_sigma        %g\ntop_k              %d\n", (double)o->top_n_sigma, o->top_k);
    fprintf(f, "typical_p          %g\ntop_p              %g\nmin_p              %g\n", (double)o->typical_p, (double)o->top_p, (double)o->min_p);
    fprintf(f, "xtc                probability %g, threshold %g\n", (double)o->xtc_probability, (double)o->xtc_threshold);
    fprintf(f, "temperature        %g, range %g, exponent %g\n", (double)o->temperature, (double)o->dyn_temp_range,
            (double)o->dyn_temp_exponent);
    fprintf(f, "mirostat           %d, tau %g, eta %g\n", o->mirostat, (double)o->mirostat_tau, (double)o->mirostat_eta);
    if (o->seed == QN_SEED_RANDOM) fprintf(f, "seed               random\n");
    else fprintf(f, "seed               %llu\n", (unsigned long long)o->seed);
}

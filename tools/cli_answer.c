#include "cli_answer.h"

#include "cli_interrupt.h"
#include "cli_term.h"

#include <stdlib.h>
#include <string.h>

static bool keep_text(cli_answer *a, const char *text, size_t n)
{
    if (a->n_text + n + 1 > a->cap_text) {
        const size_t cap = 2 * (a->n_text + n + 1);
        char *bigger = realloc(a->text, cap);
        if (!bigger) return false;
        a->text = bigger;
        a->cap_text = cap;
    }
    memcpy(a->text + a->n_text, text, n);
    a->n_text += n;
    a->text[a->n_text] = 0;
    return true;
}

static bool on_text(void *user, const char *text, size_t n)
{
    cli_answer *a = user;
    a->no_memory = a->no_memory || !keep_text(a, text, n);
    a->write_failed = a->write_failed || (a->stream && !cli_write_text(a->stream, text, n));
    return !a->no_memory && !a->write_failed;
}

static void keep_ids(cli_answer *a, cli_ids *to, const int32_t *id, size_t n)
{
    if (to->n + n > to->cap && !cli_ids_reserve(to, 2 * (to->n + n) + 256)) {
        a->no_memory = true;
        return;
    }
    memcpy(to->id + to->n, id, n * sizeof *id);
    to->n += n;
}

static void on_token(void *user, int32_t id)
{
    cli_answer *a = user;
    keep_ids(a, &a->ids, &id, 1);
}

static void on_drop(void *user, const int32_t *id, int32_t n)
{
    cli_answer *a = user;
    keep_ids(a, &a->dropped, id, (size_t)n);
}

cli_opt *cli_slide_options(cli_answer_opts *o)
{
    o->keep = 16;
    const cli_opt t[] = {
        { CLI_FLAG, "slide", 0, NULL, "go on when the context is full: the older half of it is dropped, and told\non stderr", &o->slide, 0, 0, 0 },
        { CLI_INT, "keep", 0, "N", "first tokens that stay then, in steps of 16 (default 16)", &o->keep, 0, INT32_MAX, 0 },
        { 0 },
    };
    _Static_assert(sizeof t <= sizeof o->opt, "room for the table");
    memcpy(o->opt, t, sizeof t);
    return o->opt;
}

/* The text of the tokens, for free(); NULL without memory. */
static char *text_of(const qn_model *model, const cli_ids *ids, size_t *n)
{
    char *text = malloc(1);
    *n = 0;
    while (text && qn_detokenize(model, ids->id, ids->n, true, text, *n, n, NULL) == QN_ERR_LIMIT) {
        char *bigger = realloc(text, *n);
        if (!bigger) free(text);
        text = bigger;
    }
    return text;
}

void cli_answer_report_dropped(const cli_answer *a, const qn_model *model)
{
    size_t n, n_clean;
    if (a->dropped.n == 0) return;
    fflush(stdout);
    fprintf(stderr, "quern: note: the context was full, and %zu tokens have left it:\n", a->dropped.n);
    char *text = text_of(model, &a->dropped, &n), *clean = text ? cli_utf8_clean(text, n, &n_clean) : NULL;
    if (clean) (void)cli_write_text(stderr, clean, n_clean);
    fputc('\n', stderr);
    free(clean);
    free(text);
}

qn_status cli_answer_run(cli_answer *a, const qn_model *model, qn_session *s, const cli_ids *prompt, const qn_sample_opts *sampling,
                         const cli_answer_opts *opts, qn_err *err)
{
    qn_sampler *sampler;
    qn_status status = qn_sampler_open(&sampler, model, sampling, err);
    if (status != QN_OK) return status;
    a->seed = qn_sampler_seed(sampler);
    const qn_generate_opts g = {
        .size = sizeof g, .max_tokens = opts->max_tokens, .stop = opts->stop.item, .n_stop = opts->stop.n, .ignore_end = opts->ignore_end,
        .special = opts->special, .on_text = on_text, .user = a, .on_token = on_token, .slide = opts->slide, .n_keep = opts->keep, .on_drop = on_drop,
    };
    if (!keep_text(a, "", 0)) a->no_memory = true;
    cli_interrupt_watch(s);
    const int32_t n_prompt = prompt->n < INT32_MAX ? (int32_t)prompt->n : INT32_MAX;
    status = cli_interrupted() ? QN_OK : qn_session_generate(s, prompt->id, n_prompt, sampler, &g, &a->result, err);
    cli_interrupt_watch(NULL);
    if (cli_interrupted()) a->result.finish = QN_FINISH_CANCELLED;
    qn_sampler_close(&sampler);
    if (status == QN_OK && a->no_memory) {
        status = err->status = QN_ERR_NOMEM;
        snprintf(err->text, sizeof err->text, "no memory to keep the answer");
    }
    return status;
}

void cli_answer_free(cli_answer *a)
{
    free(a->text);
    cli_ids_free(&a->ids);
    cli_ids_free(&a->dropped);
    *a = (cli_answer){ 0 };
}

const char *cli_finish_name(qn_finish f)
{
    static const char *const names[] = { "stop", "length", "cancelled", "error" };
    return names[f];
}

double cli_prompt_rate(const qn_generate_result *r)
{
    return r->prompt_seconds > 0 ? (r->n_prompt - r->n_cached) / r->prompt_seconds : 0;
}

/* The first token comes out of the prompt's evaluation; each further one costs a step. */
double cli_generate_rate(const qn_generate_result *r)
{
    return r->n_generated > 1 && r->generate_seconds > 0 ? (r->n_generated - 1) / r->generate_seconds : 0;
}

/* A share of all values, in milliseconds. */
static double ms_at(const qn_histogram *h, double share)
{
    return 1e3 * qn_histogram_quantile(h, share);
}

void cli_answer_stats(const cli_answer *a, qn_engine *engine, FILE *f)
{
    const qn_generate_result *r = &a->result;
    qn_engine_stats e;
    qn_engine_get_stats(engine, &e);
    fprintf(f, "prompt        %d tokens (%d of them cached), %.3f s, %.1f tokens/s\n", r->n_prompt, r->n_cached, r->prompt_seconds,
            cli_prompt_rate(r));
    fprintf(f, "first token   after %.3f s\n", r->first_token_seconds);
    fprintf(f, "answer        %d tokens, %.3f s, %.1f tokens/s; finish: %s; seed %llu\n", r->n_generated, r->generate_seconds,
            cli_generate_rate(r), cli_finish_name(r->finish), (unsigned long long)a->seed);
    if (r->n_drafted)
        fprintf(f, "draft         %d tokens in %d steps, %.1f each; %d (%.0f %%) accepted; %.2f times as fast as without\n", r->n_drafted, r->n_draft_steps,
                (double)r->n_drafted / r->n_draft_steps, r->n_accepted, 100.0 * r->n_accepted / r->n_drafted, r->draft_gain);
    if (e.token_seconds.n)
        fprintf(f, "token waits   half within %.1f ms, 95 %% within %.1f ms, 99 %% within %.1f ms; longest of this answer %.1f ms\n",
                ms_at(&e.token_seconds, 0.5), ms_at(&e.token_seconds, 0.95), ms_at(&e.token_seconds, 0.99), 1e3 * r->slowest_seconds);
    if (e.n_ended > 1)
        fprintf(f, "all answers   %llu; first tokens: half within %.1f ms, 95 %% within %.1f ms; %llu prompt tokens, %llu of them cached, %llu generated\n",
                (unsigned long long)e.n_ended, ms_at(&e.first_token_seconds, 0.5), ms_at(&e.first_token_seconds, 0.95),
                (unsigned long long)e.n_prompt, (unsigned long long)e.n_cached, (unsigned long long)e.n_generated);
}

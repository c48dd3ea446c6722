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

static void on_token(void *user, int32_t id)
{
    cli_answer *a = user;
    if (a->ids.n == a->ids.cap) {
        const size_t cap = a->ids.cap ? 2 * a->ids.cap : 256;
        int32_t *bigger = realloc(a->ids.id, cap * sizeof *bigger);
        if (!bigger) {
            a->no_memory = true;
            return;
        }
        a->ids.id = bigger;
        a->ids.cap = cap;
    }
    a->ids.id[a->ids.n++] = id;
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
        .special = opts->special, .on_text = on_text, .user = a, .on_token = on_token,
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

void cli_answer_stats(const cli_answer *a, FILE *f)
{
    const qn_generate_result *r = &a->result;
    fprintf(f, "prompt        %d tokens (%d of them cached), %.3f s, %.1f tokens/s\n", r->n_prompt, r->n_cached, r->prompt_seconds,
            cli_prompt_rate(r));
    fprintf(f, "first token   after %.3f s\n", r->first_token_seconds);
    fprintf(f, "answer        %d tokens, %.3f s, %.1f tokens/s; finish: %s; seed %llu\n", r->n_generated, r->generate_seconds,
            cli_generate_rate(r), cli_finish_name(r->finish), (unsigned long long)a->seed);
}

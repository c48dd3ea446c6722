/* Many requests from a file, side by side. */
#include "batch.h"
#include "cli_answer.h"
#include "cli_interrupt.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char about[] =
    "Answer every line of FILE (JSON, one object a line; \"-\" is stdin), many at a time, and append a line to the results as each is done. A line is "
    "one of OpenAI's batches, {\"custom_id\", \"method\": \"POST\", \"url\": \"/v1/chat/completions\" or \"/v1/completions\", \"body\": {...}}, or the body "
    "alone: {\"messages\": [...]} in the model's chat template, or {\"prompt\": text or token ids} to be continued; with temperature, top_p, max_tokens, stop, "
    "n, seed, logit_bias and every other option of sampling under its name here. What a line does not say is as the options below say. A line that "
    "cannot be done has an error as its result, and the others go on; the exit code is 1 then. Results come in the order in which they are done, "
    "under \"custom_id\" and \"line\". Started again with the same -o, after a kill too, what is done is not done again. Ctrl-C keeps what is done "
    "and ends with 130. No answer depends on what runs beside it.";

enum { DEFAULT_PARALLEL = 8, MOST_PARALLEL = 4096 };

typedef struct batch_args {
    cli_engine engine;
    cli_sampling sampling;
    const char *file, *output;
    int32_t max_tokens;
    bool stats;
} batch_args;

typedef struct job job;

typedef struct batch {
    batch_args *a;
    batch_lines lines;
    batch_out out;
    qn_template *template;
    qn_model_info info;
    job **open;              /* [n_open] under way                                           */
    int32_t n_open, most_open;
    int32_t n_done, n_before, n_failed;
    double began, told;
    bool is_shown;           /* progress stands on the terminal                              */
    atomic_llong n_tokens;   /* generated                                                    */
    /* between the engine's thread and ours */
    pthread_mutex_t lock;
    pthread_cond_t news;
    job *ended;
} batch;

/* A request under way. */
struct job {
    batch *b;
    const batch_line *line;
    bool is_chat;
    qn_request *request;
    batch_choice *choice;    /* [n]                                                          */
    int32_t n, n_ended;
    qn_err err;              /* of the first choice that failed                              */
    job *next;
};

/* ---- on the engine's thread ---- */

static bool on_text(void *user, int32_t i, const char *text, size_t len)
{
    batch_choice *c = &((job *)user)->choice[i];
    if (c->n_text + len > c->cap_text) {
        const size_t cap = 2 * (c->n_text + len) + 256;
        char *bigger = realloc(c->text, cap);
        c->no_memory |= !bigger;
        if (!bigger) return false;
        c->text = bigger;
        c->cap_text = cap;
    }
    memcpy(c->text + c->n_text, text, len);
    c->n_text += len;
    return true;
}

static void on_token(void *user, int32_t i, int32_t id)
{
    (void)i, (void)id;
    atomic_fetch_add_explicit(&((job *)user)->b->n_tokens, 1, memory_order_relaxed);
}

static void on_end(void *user, int32_t i, const qn_generate_result *result, const qn_err *err)
{
    job *j = user;
    batch *b = j->b;
    const qn_err no_memory = { QN_ERR_NOMEM, "no memory to keep the answer" };
    if (!err && j->choice[i].no_memory) err = &no_memory;
    j->choice[i].result = *result;
    pthread_mutex_lock(&b->lock);
    if (err && j->err.status == QN_OK) j->err = *err;
    if (++j->n_ended == j->n) {
        j->next = b->ended;
        b->ended = j;
        pthread_cond_signal(&b->news);
    }
    pthread_mutex_unlock(&b->lock);
}

/* ---- for who watches ---- */

static void say_progress(batch *b, bool last)
{
    const double now = cli_now(), seconds = now - b->began;
    char left[48] = "";
    if (!isatty(STDERR_FILENO) || (!last && now - b->told < 0.2)) return;
    b->told = now;
    if (last) {
        if (b->is_shown) fputs("\r\033[K", stderr);
        return;
    }
    const int32_t n_new = b->n_done - b->n_before;
    if (n_new > 0) {
        const long s = (long)(seconds * (b->lines.n - b->n_done) / n_new + 0.5);
        snprintf(left, sizeof left, ", %ld:%02ld:%02ld left", s / 3600, s / 60 % 60, s % 60);
    }
    fprintf(stderr, "\r%d of %d done, %.1f tokens/s%s\033[K", b->n_done, b->lines.n, (double)atomic_load(&b->n_tokens) / (seconds > 0 ? seconds : 1), left);
    fflush(stderr);
    b->is_shown = true;
}

static void say_stats(const batch *b)
{
    qn_engine_stats st;
    const double seconds = cli_now() - b->began;
    qn_engine_get_stats(b->a->engine.engine, &st);
    fprintf(stderr, "requests      %d, %d of them failed; %.3f s\n", b->n_done - b->n_before, b->n_failed, seconds);
    fprintf(stderr, "tokens        %llu read (%llu of them cached), %llu generated, %.1f tokens/s together\n", (unsigned long long)st.n_prompt,
            (unsigned long long)st.n_cached, (unsigned long long)st.n_generated,
            (double)(st.n_prompt - st.n_cached + st.n_generated) / (seconds > 0 ? seconds : 1));
    fprintf(stderr, "steps         %llu; %llu times an answer gave its memory away\n", (unsigned long long)st.n_steps, (unsigned long long)st.n_preempted);
}

/* ---- one request ---- */

static void free_job(job *j)
{
    for (int32_t i = 0; i < j->n && j->choice; i++) free(j->choice[i].text);
    free(j->choice);
    free(j);
}

/* Write a result. @return false: it could not be written */
static bool finish(batch *b, json_t *result, bool failed)
{
    const bool written = batch_out_write(&b->out, result);
    json_decref(result);
    b->n_done++;
    b->n_failed += failed;
    return written;
}

static const char *code_of(qn_status s)
{
    return s == QN_ERR_ARG || s == QN_ERR_CTX_FULL ? "invalid_request" : "server_error";
}

/* A request that has ended: its result goes out, where it has one. @return false: it could not be written */
static bool close_job(batch *b, job *j)
{
    bool cancelled = false, written = true;
    qn_request_close(&j->request); /* waits until the engine's thread has let go */
    for (int32_t i = 0; i < b->n_open; i++)
        if (b->open[i] == j) b->open[i] = b->open[--b->n_open];
    for (int32_t i = 0; i < j->n; i++) cancelled |= j->choice[i].result.finish == QN_FINISH_CANCELLED;
    if (j->err.status != QN_OK) written = finish(b, batch_error(j->line, code_of(j->err.status), NULL, j->err.text), true);
    else if (!cancelled) written = finish(b, batch_result(j->line, j->is_chat, b->info.name, j->choice, j->n), false);
    free_job(j);
    return written;
}

static qn_status submit(batch *b, const batch_request *r, qn_err *err)
{
    job *j = calloc(1, sizeof *j);
    batch_choice *choice = calloc((size_t)r->n, sizeof *choice);
    if (!j || !choice) {
        free(j);
        free(choice);
        *err = (qn_err){ QN_ERR_NOMEM, "no memory for a request" };
        return QN_ERR_NOMEM;
    }
    *j = (job){ .b = b, .line = r->line, .is_chat = r->is_chat, .choice = choice, .n = r->n };
    const qn_request_opts o = {
        .size = sizeof o, .prompt = r->ids.id, .n_prompt = r->ids.n < INT32_MAX ? (int32_t)r->ids.n : INT32_MAX, .sampling = &r->sampling.o,
        .max_tokens = r->max_tokens, .stop = r->stop, .n_stop = r->n_stop, .n_choices = r->n, .on_text = on_text, .on_token = on_token,
        .on_end = on_end, .user = j,
    };
    const qn_status status = qn_engine_submit(b->a->engine.engine, &o, &j->request, err);
    if (status != QN_OK) free_job(j);
    else b->open[b->n_open++] = j;
    return status;
}

/* @return false: its result could not be written */
static bool begin(batch *b, const batch_line *line)
{
    qn_err err = { 0 };
    batch_request r;
    json_t *error = NULL;
    if (!batch_request_read(&r, line, b->a->engine.model, &b->template, &b->a->sampling, b->a->max_tokens))
        error = batch_error(line, "invalid_request", r.at_fault, r.why);
    else if (submit(b, &r, &err) != QN_OK)
        error = batch_error(line, code_of(err.status), NULL, err.text);
    batch_request_free(&r);
    return error ? finish(b, error, true) : true;
}

/* ---- all of them ---- */

/* Requests that have ended, after a while of waiting where there are none. */
static job *wait_ended(batch *b)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 100000000;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    pthread_mutex_lock(&b->lock);
    if (!b->ended) pthread_cond_timedwait(&b->news, &b->lock, &until);
    job *j = b->ended;
    b->ended = NULL;
    pthread_mutex_unlock(&b->lock);
    return j;
}

static bool close_ended(batch *b, job *j)
{
    bool written = true;
    for (job *next; j; j = next) {
        next = j->next;
        written = close_job(b, j) && written;
    }
    return written;
}

/* Some more are under way than run side by side: a place that becomes free is taken at once. */
static int run_all(batch *b)
{
    bool written = true;
    int32_t next = 0;
    while (written && !cli_interrupted() && (next < b->lines.n || b->n_open)) {
        for (; next < b->lines.n && b->n_open < b->most_open && written && !cli_interrupted(); next++)
            if (!b->lines.line[next].is_done) written = begin(b, &b->lines.line[next]);
        if (b->n_open) written = close_ended(b, wait_ended(b)) && written;
        say_progress(b, false);
    }
    for (int32_t i = 0; i < b->n_open; i++) qn_request_cancel(b->open[i]->request);
    while (b->n_open) written = close_ended(b, wait_ended(b)) && written;
    say_progress(b, true);
    if (!written) return CLI_FAULT;
    return cli_interrupted() ? CLI_INTERRUPTED : CLI_OK;
}

static int open_all(batch *b)
{
    batch_args *a = b->a;
    int code = cli_model_open(&a->engine);
    if (code < 0) code = cli_engine_open(&a->engine);
    if (code >= 0) return code;
    qn_model_get_info(a->engine.model, &b->info);
    b->most_open = 2 * a->engine.parallel;
    b->open = calloc((size_t)b->most_open, sizeof(job *));
    if (!b->open || pthread_mutex_init(&b->lock, NULL) != 0) return cli_fault("no memory for the requests");
    if (pthread_cond_init(&b->news, NULL) == 0) return -1;
    pthread_mutex_destroy(&b->lock);
    return cli_fault("no memory for the requests");
}

static int answer_all(batch *b)
{
    int code = open_all(b);
    if (code >= 0) return code;
    b->began = cli_now();
    code = run_all(b);
    if (b->a->stats) say_stats(b);
    pthread_cond_destroy(&b->news);
    pthread_mutex_destroy(&b->lock);
    return code;
}

static int run_parsed(batch *b)
{
    const batch_args *a = b->a;
    int code = batch_lines_read(&b->lines, a->file);
    if (code >= 0) return code;
    code = batch_out_open(&b->out, a->output, &b->lines);
    for (int32_t i = 0; i < b->lines.n; i++) {
        b->n_done += b->lines.line[i].is_done;
        b->n_failed += b->lines.line[i].has_failed;
    }
    b->n_before = b->n_done;
    if (code < 0) code = b->n_done < b->lines.n ? answer_all(b) : CLI_OK;
    if (!batch_out_close(&b->out) && code == CLI_OK) code = CLI_FAULT;
    if (code == CLI_OK && b->n_failed)
        code = cli_fault("%d of %d requests failed; the results say why", b->n_failed, b->lines.n);
    return code;
}

static int run(int argc, char **argv)
{
    batch_args a = { .output = "-", .engine.parallel = DEFAULT_PARALLEL };
    cli_opt opts[] = {
        { .kind = CLI_FILE, .name = "file", .target = &a.file },
        { CLI_STR, "output", 'o', "FILE", "append results to FILE (default: stdout, which cannot be resumed)", &a.output, 0, 0, 0 },
        { CLI_INT, "parallel", 0, "N", "answers side by side, each with a context of its own (default 8)", &a.engine.parallel, 1, MOST_PARALLEL, 0 },
        { CLI_INT, "max-tokens", 'n', "N", "tokens at most, where a line does not say (default 0: until the context\nis full)",
          &a.max_tokens, -1, INT32_MAX, 0 },
        { CLI_FLAG, "stats", 0, NULL, "tokens, steps and seconds, to stderr", &a.stats, 0, 0, 0 },
        { .kind = CLI_TABLE, .target = cli_engine_options(&a.engine) },
        { .kind = CLI_TABLE, .target = cli_sampling_options(&a.sampling) },
        { 0 },
    };
    int code = cli_parse(argc, argv, "batch FILE [-o RESULTS] [OPTION]...", about, opts);
    if (code < 0) code = cli_sampling_finish(&a.sampling, "batch");
    if (code >= 0) return code;
    if (!a.file) return cli_usage("batch: no file of requests");
    if (a.sampling.show_order) cli_sampling_print(&a.sampling.o, stderr);
    batch b = { .a = &a, .out.fd = -1 };
    code = run_parsed(&b);
    qn_template_close(&b.template);
    cli_engine_close(&a.engine);
    batch_lines_free(&b.lines);
    free(b.open);
    return code;
}

extern const qn_cmd qn_cmd_batch;
const qn_cmd qn_cmd_batch = { "batch", "answer a file of requests, many at a time", 25, run };

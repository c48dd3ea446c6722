/* Runs tests and keeps the time. */
#include "bench.h"
#include "cli_interrupt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void bench_test_name(const bench_test *t, char *out, size_t cap)
{
    char depth[24] = "", generate[24] = "", prompt[24] = "", parallel[24] = "";
    if (t->n_prompt) snprintf(prompt, sizeof prompt, "pp%d%s", t->n_prompt, t->n_gen ? "+" : "");
    if (t->n_gen) snprintf(generate, sizeof generate, "tg%d", t->n_gen);
    if (t->depth) snprintf(depth, sizeof depth, "@d%d", t->depth);
    if (t->n_parallel) snprintf(parallel, sizeof parallel, " x%d", t->n_parallel);
    snprintf(out, cap, "%s%s%s%s", prompt, generate, depth, parallel);
}

double bench_least_seconds(const bench_limit *l, double bytes, double mul_adds, const char **bound)
{
    *bound = "";
    if (l->bytes_per_second <= 0 || l->mul_adds_per_second <= 0) return 0;
    const double read = bytes / l->bytes_per_second, work = mul_adds / l->mul_adds_per_second;
    *bound = read > work ? "memory" : "multiply";
    return read > work ? read : work;
}

double bench_limit_rate(const bench_result *r, const char **bound)
{
    const double least = bench_least_seconds(r->limit, r->bytes, r->mul_adds, bound);
    return least > 0 ? bench_n_tokens(&r->test) / least : 0;
}

/* ---- one run ---- */

/* Tokens one by one, or a prompt at once; logits of the last, as an answer needs them. */
static qn_status evaluate(qn_session *s, const bench_test *t, const int32_t *ids, float *logits, qn_err *err)
{
    qn_status status = QN_OK;
    if (t->n_prompt) status = qn_session_eval(s, ids, t->n_prompt, logits, err);
    for (int32_t i = 0; i < t->n_gen && status == QN_OK; i++) status = qn_session_eval(s, ids + t->n_prompt + i, 1, logits, err);
    return status;
}

/* Bring the session to the depth of the test, then time its tokens. */
static qn_status run_session(qn_engine *e, qn_session *s, const bench_test *t, const int32_t *ids, float *logits, double *seconds, qn_err *err)
{
    qn_status status = QN_OK;
    const int32_t have = qn_session_rewind(s, ids, t->depth);
    if (have < t->depth) status = qn_session_eval(s, ids + have, t->depth - have, NULL, err);
    if (status != QN_OK) return status;
    qn_engine_stage_reset(e);
    const double began = cli_now();
    status = evaluate(s, t, ids + t->depth, logits, err);
    *seconds = cli_now() - began;
    return status;
}

/* What the runs of a test must read and do: the sum over its steps. Timelines side by side read the weights once a step, each its own keys and values,
 * and their prompts fill the chunks of a step together. */
static qn_status count_costs(qn_engine *e, bench_result *r, qn_err *err)
{
    qn_engine_info info;
    const bench_test *t = &r->test;
    double weights, bytes, mul_adds;
    const int32_t n_side = t->n_parallel ? t->n_parallel : 1;
    qn_engine_get_info(e, &info);
    qn_status s = qn_engine_cost(e, 0, 1, 1, &weights, &mul_adds, err);
    r->bytes = r->mul_adds = 0;
    for (int32_t at = 0, n; at < t->n_prompt + t->n_gen && s == QN_OK; at += n) {
        const int32_t left = t->n_prompt - at;
        n = left <= 0 ? 1 : left < info.n_chunk ? left : info.n_chunk;
        s = qn_engine_cost(e, t->depth + at, n, left <= n ? 1 : 0, &bytes, &mul_adds, err);
        const double shared = bytes < weights ? bytes : weights, share = (double)n_side * n / info.n_chunk;
        r->bytes += n_side * (bytes - shared) + shared * (share > 1 ? share : 1);
        r->mul_adds += n_side * mul_adds;
    }
    return s;
}

/* ---- a profile ---- */

static qn_status begin_profile(const bench_args *a, qn_engine *e, bench_result *r, qn_err *err)
{
    free(r->stage);
    r->stage = NULL;
    r->seconds = 0;
    r->n_stages = a->profile ? qn_engine_stage_count(e) : 0;
    if (!r->n_stages) return QN_OK;
    r->stage = calloc((size_t)r->n_stages, sizeof *r->stage);
    if (r->stage) return QN_OK;
    *err = (qn_err){ QN_ERR_NOMEM, "no memory for the profile" };
    return QN_ERR_NOMEM;
}

/* The fastest run is kept: it tells of the program, the others of what else the machine did. */
static void keep_profile(qn_engine *e, bench_result *r, double seconds)
{
    if (!r->n_stages || (r->seconds > 0 && r->seconds <= seconds)) return;
    r->seconds = seconds;
    for (int32_t i = 0; i < r->n_stages; i++) (void)qn_engine_stage_at(e, i, &r->stage[i]);
}

int32_t bench_stages(const bench_result *r, bool layers, qn_stage_info *out)
{
    int32_t n = 0;
    for (int32_t i = 0; i < r->n_stages; i++) {
        const qn_stage_info *s = &r->stage[i];
        if (!s->n_runs) continue; /* it ends without a barrier: its time is the next one's */
        int32_t k = layers ? n : 0;
        while (k < n && strcmp(out[k].name, s->name) != 0) k++;
        if (k == n) {
            out[n++] = *s;
            if (!layers) out[k].i_layer = -1;
            continue;
        }
        out[k].n_runs += s->n_runs;
        out[k].seconds += s->seconds;
        out[k].bytes += s->bytes;
        out[k].mul_adds += s->mul_adds;
    }
    return n;
}

/* Every pass runs every stage once. */
uint64_t bench_n_steps(const bench_result *r)
{
    uint64_t n = 1;
    for (int32_t i = 0; i < r->n_stages; i++) n = r->stage[i].n_runs > n ? r->stage[i].n_runs : n;
    return n;
}

/* ---- a test ---- */

static void summarise(bench_result *r)
{
    double sum = 0, squares = 0;
    r->best = 0;
    for (int32_t i = 0; i < r->n; i++) {
        sum += r->rate[i];
        r->best = r->rate[i] > r->best ? r->rate[i] : r->best;
    }
    r->mean = sum / r->n;
    for (int32_t i = 0; i < r->n; i++) squares += (r->rate[i] - r->mean) * (r->rate[i] - r->mean);
    r->deviation = r->n > 1 ? sqrt(squares / (r->n - 1)) : 0;
}

/* For a person who waits: on a terminal, when a test takes over a second. i_run -1 is the run that does not count; `runs`: erase. */
static void progress(const bench_args *a, const bench_test *t, int32_t i_run, double began)
{
    char name[64];
    if (!isatty(STDERR_FILENO) || cli_now() - began < 1) return;
    bench_test_name(t, name, sizeof name);
    if (i_run >= a->runs) fputs("\r\033[K", stderr);
    else fprintf(stderr, "\r%s: run %d of %d\033[K", name, i_run + 1, a->runs);
    fflush(stderr);
}

/* i_run -1 is the one that does not count. */
static qn_status run_once(const bench_args *a, qn_engine *e, qn_session *s, const bench_test *t, int32_t i_run, const int32_t *ids, float *logits,
                          double *seconds, qn_err *err)
{
    qn_model_info info;
    if (!t->n_parallel) return run_session(e, s, t, ids, logits, seconds, err);
    qn_model_get_info(a->engine.model, &info);
    return bench_parallel(e, t, info.n_vocab, i_run, seconds, err);
}

int bench_time(const bench_args *a, qn_engine *e, qn_session *s, const int32_t *ids, float *logits, bench_result *r)
{
    qn_err err = { 0 };
    qn_status status = count_costs(e, r, &err);
    const double began = cli_now();
    r->n = 0;
    if (status == QN_OK) status = begin_profile(a, e, r, &err);
    for (int32_t i = -1; i < a->runs && status == QN_OK; i++) {
        double seconds = 0;
        progress(a, &r->test, i, began);
        status = run_once(a, e, s, &r->test, i, ids, logits, &seconds, &err);
        if (i < 0 || status != QN_OK) continue;
        r->rate[r->n++] = bench_n_tokens(&r->test) / seconds;
        keep_profile(e, r, seconds);
    }
    progress(a, &r->test, a->runs, began);
    if (cli_interrupted()) return CLI_INTERRUPTED;
    if (status != QN_OK) return cli_failed(&err);
    summarise(r);
    return -1;
}

int bench_first_token(const bench_args *a, float *logits)
{
    qn_err err = { 0 };
    qn_session *s = NULL;
    const int32_t id = 0;
    qn_status status = qn_session_open(&s, a->engine.engine, &err);
    if (status == QN_OK) status = qn_session_eval(s, &id, 1, logits, &err);
    qn_session_close(&s);
    return status == QN_OK ? -1 : cli_failed(&err);
}

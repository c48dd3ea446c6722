/* Many timelines at once, as requests. */
#include "bench.h"
#include "cli_interrupt.h"

#include <stdlib.h>

typedef struct crowd {
    qn_engine *engine;
    const bench_test *test;
    int32_t *ids;            /* [n_parallel][n_ids] prompts                                  */
    int32_t n_ids;
    qn_request **request;    /* [n_parallel]                                                 */
} crowd;

/* Every timeline has its first `n_prompt` tokens read, and `n_gen` more evaluated. */
static qn_status run_crowd(const crowd *c, int32_t n_prompt, int32_t n_gen, qn_err *err)
{
    qn_sample_opts greedy;
    qn_sample_opts_init(&greedy);
    greedy.temperature = 0;
    qn_status status = QN_OK;
    const int32_t n = c->test->n_parallel;
    for (int32_t i = 0; i < n && status == QN_OK; i++) {
        const qn_request_opts o = { .size = sizeof o, .prompt = c->ids + (int64_t)i * c->n_ids, .n_prompt = n_prompt, .sampling = &greedy,
                                    .max_tokens = n_gen + 1, .ignore_end = true };
        status = qn_engine_submit(c->engine, &o, &c->request[i], err);
    }
    for (int32_t i = 0; i < n && c->request[i]; i++) {
        while (!qn_request_wait(c->request[i], 0.1))
            if (cli_interrupted() || status != QN_OK) qn_request_cancel(c->request[i]);
        for (qn_event ev; qn_request_next(c->request[i], 0, &ev);) {
            if (!ev.ended || ev.result.finish != QN_FINISH_ERROR || status != QN_OK) continue;
            *err = ev.err;
            status = ev.err.status;
        }
        qn_request_close(&c->request[i]);
    }
    return status;
}

qn_status bench_parallel(qn_engine *e, const bench_test *t, int32_t n_vocab, int32_t i_run, double *seconds, qn_err *err)
{
    const int32_t n_before = t->n_prompt ? t->n_prompt : 1; /* tokens alone need one to begin with */
    crowd c = { .engine = e, .test = t, .n_ids = t->depth + n_before };
    const size_t n = (size_t)t->n_parallel;
    c.ids = malloc(n * (size_t)c.n_ids * sizeof *c.ids);
    c.request = calloc(n, sizeof(qn_request *));
    qn_status status = c.ids && c.request ? QN_OK : QN_ERR_NOMEM;
    if (status == QN_OK) {
        bench_fill_tokens(c.ids, (int64_t)n * c.n_ids, n_vocab, (uint64_t)i_run + 2); /* others in every run: none is found in the cache */
        if (t->depth) status = run_crowd(&c, t->depth, 0, err);
    } else {
        *err = (qn_err){ QN_ERR_NOMEM, "no memory for the prompts" };
    }
    if (status == QN_OK) {
        qn_engine_stage_reset(e);
        const double began = cli_now();
        status = run_crowd(&c, c.n_ids, t->n_prompt ? t->n_gen : t->n_gen - 1, err);
        *seconds = cli_now() - began;
    }
    free(c.ids);
    free(c.request);
    return status;
}

#include "perplexity_eval.h"

#include "cli_interrupt.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GROUP = 128, THREADS_MAX = 64 };  /* 128 rows of 262,144 logits are 134 MB, and enough for the matrices to be read rarely */

typedef struct work {
    ppl_eval *e;
    qn_session *s;
    int32_t *chunk;         /* [n_ctx]: the tokens, BOS in front        */
    float *logits;          /* [GROUP][n_vocab]                         */
    uint16_t *rows;         /* [GROUP][words], or NULL                  */
    int32_t n_threads;
} work;

/* Rows i, i + n_threads ... of a group. */
typedef struct share {
    const work *w;
    const int32_t *next;    /* [n] tokens that follow                   */
    ppl_point *points;      /* [n]                                      */
    int32_t first, n;
} share;

static void *rate_rows(void *user)
{
    const share *s = user;
    const work *w = s->w;
    const int32_t n_vocab = w->e->head.n_vocab;
    for (int32_t i = s->first; i < s->n; i += w->n_threads) {
        const float *logits = w->logits + (size_t)i * (size_t)n_vocab;
        uint16_t *row = w->rows ? w->rows + (size_t)i * ppl_row_words(n_vocab) : NULL;
        if (w->e->base) s->points[i] = ppl_row_compare(row, logits, n_vocab, s->next[i]);
        else s->points[i] = (ppl_point){ .nll = row ? ppl_row_write(row, logits, n_vocab, s->next[i]) : ppl_row_nll(logits, n_vocab, s->next[i]) };
    }
    return NULL;
}

/* Every row is by itself, so that the result does not depend on the threads. One that cannot be had is done without. */
static void rate_group(const work *w, const int32_t *next, ppl_point *points, int32_t n)
{
    share shares[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    bool runs[THREADS_MAX] = { false };
    for (int32_t i = w->n_threads - 1; i >= 0; i--) {
        shares[i] = (share){ w, next, points, i, n };
        runs[i] = i > 0 && pthread_create(&threads[i], NULL, rate_rows, &shares[i]) == 0;
        if (!runs[i]) rate_rows(&shares[i]);
    }
    for (int32_t i = 1; i < w->n_threads; i++)
        if (runs[i]) pthread_join(threads[i], NULL);
}

/* Positions [at, at + n) of the chunk, all of which count. */
static int group(work *w, int32_t at, int32_t n, ppl_point *points)
{
    ppl_eval *e = w->e;
    qn_err err = { 0 };
    const qn_status status = qn_session_eval_all(w->s, w->chunk + at, n, w->logits, &err);
    if (status != QN_OK) return status == QN_ERR_CANCELLED ? CLI_INTERRUPTED : cli_failed(&err);
    if (e->base && !ppl_base_rows(e->base, n, w->rows)) return CLI_FAULT;
    rate_group(w, w->chunk + at + 1, points, n);
    for (int32_t i = 0; i < n; i++)
        if (!isfinite(points[i].nll) || !isfinite(points[i].kl)) return cli_fault("the model gives no finite probability at a position of the text");
    const size_t row_bytes = ppl_row_words(e->head.n_vocab) * sizeof *w->rows;
    if (e->rows_out && fwrite(w->rows, row_bytes, (size_t)n, e->rows_out) != (size_t)n)
        return cli_fault("cannot write %s: %s", e->rows_path, strerror(errno));
    return -1;
}

static int chunk(work *w, int32_t i, ppl_point *points)
{
    const ppl_eval *e = w->e;
    const int32_t n_ctx = (int32_t)e->head.n_ctx, first = n_ctx / 2, end = n_ctx - 1;
    qn_err err = { 0 };
    memcpy(w->chunk, e->tokens + (size_t)i * (size_t)n_ctx, (size_t)n_ctx * sizeof *w->chunk);
    if (e->bos >= 0) w->chunk[0] = e->bos;
    qn_session_rewind(w->s, w->chunk, 0);
    const qn_status status = qn_session_eval(w->s, w->chunk, first, NULL, &err);
    if (status != QN_OK) return status == QN_ERR_CANCELLED ? CLI_INTERRUPTED : cli_failed(&err);
    int code = -1;
    for (int32_t at = first, n; at < end && code < 0; at += n) {
        n = end - at < GROUP ? end - at : GROUP;
        code = cli_interrupted() ? CLI_INTERRUPTED : group(w, at, n, points + (at - first));
    }
    return code;
}

/* "chunk 3 of 12: perplexity 24.12 +- 2.11, KL divergence 0.0123; 812 tokens a second, 6 s left" */
static void progress(const ppl_eval *e, int32_t done, double seconds)
{
    if (!isatty(STDERR_FILENO)) return;
    fputs("\r\033[K", stderr);
    if (done && done < e->head.n_chunks) {
        ppl_stats s;
        const size_t n = (size_t)done * (size_t)ppl_n_rows(e->head.n_ctx);
        ppl_stats_make(&s, e->points, n, NULL);
        fprintf(stderr, "chunk %d of %d: perplexity %.4f +- %.4f", done, e->head.n_chunks, s.perplexity.value, s.perplexity.error);
        double kl = 0;
        for (size_t i = 0; i < n; i++) kl += e->points[i].kl;
        if (e->base) fprintf(stderr, ", KL divergence %.6f", kl / (double)n);
        fprintf(stderr, "; %.0f tokens a second, %.0f s left", (double)done * e->head.n_ctx / seconds,
                seconds * (e->head.n_chunks - done) / done);
    }
    fflush(stderr);
}

static int all_chunks(work *w)
{
    ppl_eval *e = w->e;
    const size_t n_rows = (size_t)ppl_n_rows(e->head.n_ctx);
    const double began = cli_now();
    int code = -1;
    for (int32_t i = 0; i < e->head.n_chunks && code < 0; i++) {
        progress(e, i, cli_now() - began);
        code = chunk(w, i, e->points + (size_t)i * n_rows);
    }
    e->seconds = cli_now() - began;
    progress(e, e->head.n_chunks, e->seconds);
    return code;
}

int ppl_eval_run(ppl_eval *e)
{
    qn_err err = { 0 };
    qn_engine_info info;
    qn_engine_get_info(e->engine->engine, &info);
    const size_t n_vocab = (size_t)e->head.n_vocab;
    work w = { .e = e, .n_threads = info.n_threads < THREADS_MAX ? info.n_threads : THREADS_MAX };
    w.chunk = calloc(e->head.n_ctx, sizeof *w.chunk);
    w.logits = calloc(GROUP, n_vocab * sizeof *w.logits);
    const bool rows = e->base || e->rows_out;
    if (rows) w.rows = calloc(GROUP, ppl_row_words(e->head.n_vocab) * sizeof *w.rows);
    int code = -1;
    if (!w.chunk || !w.logits || (rows && !w.rows)) code = cli_fault("no memory for %d rows of %zu logits", GROUP, n_vocab);
    if (code < 0 && qn_session_open(&w.s, e->engine->engine, &err) != QN_OK) code = cli_failed(&err);
    if (code < 0) {
        cli_interrupt_watch(w.s);
        code = all_chunks(&w);
        cli_interrupt_watch(NULL);
    }
    qn_session_close(&w.s);
    free(w.chunk);
    free(w.logits);
    free(w.rows);
    return code;
}

#include "quantize.h"

#include <stdlib.h>

int quantize_gptq_check(quantize_gptq *g)
{
    qn_linalg linalg;
    if (!g->path) return -1;
    if (!quantize_linalg(&linalg, 0))
        return cli_fault("--gptq needs OpenBLAS (libopenblas.so.0), and it cannot be loaded; 'apt-get install libopenblas0' brings it");
    g->text = cli_read_all(g->path, &g->n_text);
    return g->text ? -1 : CLI_FAULT;
}

qn_status quantize_gptq_open(quantize_gptq *g, qn_quantize *q, const char *path, int32_t n_threads, qn_err *err)
{
    if (!g->path) return QN_OK;
    qn_gptq_opts o = {
        .size = sizeof o, .text = { g->text, g->n_text }, .n_chunks = g->chunks, .n_threads = n_threads, .damping = (double)g->damping,
        .act_order = !g->in_place, .progress = quantize_gptq_tell, .progress_user = &g->progress,
    };
    (void)quantize_linalg(&o.linalg, n_threads);
    quantize_progress_begin(&g->progress);
    return qn_gptq_open(&g->gptq, q, path, &o, err);
}

void quantize_gptq_close(quantize_gptq *g)
{
    qn_gptq_close(&g->gptq);
    free(g->text);
    g->text = NULL;
}

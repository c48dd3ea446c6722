/* A model over chunks of tokens: what it thinks of every position that counts. */
#ifndef QUERN_PERPLEXITY_EVAL_H
#define QUERN_PERPLEXITY_EVAL_H

#include "cli_common.h"
#include "perplexity_base.h"
#include "perplexity_row.h"

typedef struct ppl_eval {
    const cli_engine *engine;    /* open                                                                        */
    ppl_head head;
    const int32_t *tokens;       /* [n_chunks][n_ctx]                                                           */
    int32_t bos;                 /* takes the place of a chunk's first token; -1: nothing does                  */
    FILE *rows_out;              /* rows are written here; may be NULL                                          */
    const char *rows_path;       /* its name, for messages                                                      */
    ppl_base *base;              /* or compared with these; may be NULL                                         */
    ppl_point *points;           /* [n_chunks * ppl_n_rows]: out                                                */
    double seconds;              /* out                                                                         */
} ppl_eval;

/** @return -1 when it is done, else the exit code, after a message */
int ppl_eval_run(ppl_eval *e);

#endif

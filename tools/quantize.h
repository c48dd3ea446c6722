/* What the parts of `quern quantize` share. */
#ifndef QUERN_QUANTIZE_H
#define QUERN_QUANTIZE_H

#include "cli.h"

/* ---- formats of single tensors (quantize_types.c) ---- */

typedef struct quantize_types quantize_types;
/** Read REGEX=TYPE arguments (POSIX extended, anywhere in a tensor's name; the first that matches decides). @return NULL after a message */
quantize_types *quantize_types_open(const cli_list *args);
void quantize_types_close(quantize_types **t);
/** For qn_quantize_opts.tensor_type, with a quantize_types as user. */
const char *quantize_types_choose(void *types, const qn_tensor_info *tensor);
/** The first argument that no tensor was matched by, or NULL. */
const char *quantize_types_unused(const quantize_types *t);

/* ---- signals and progress (quantize_progress.c) ---- */

/** SIGINT, SIGTERM and SIGHUP are noted from now on; writing to a closed pipe or past a limit of size is an error and no signal. */
void quantize_signals_catch(void);
/** The signal that was caught, or 0. */
int quantize_signal(void);

typedef struct quantize_progress {
    double began, told;      /* seconds                                                              */
    bool shown;              /* stderr is a terminal                                                 */
} quantize_progress;
void quantize_progress_begin(quantize_progress *p);
/** A qn_progress_fn: percent, rate and time left, rewritten in place. Stops after a signal. */
bool quantize_progress_tell(void *progress, uint64_t done, uint64_t total);
/** The same for GPTQ, which has no rate. */
bool quantize_gptq_tell(void *progress, uint64_t done, uint64_t total);
/** Take the line away. */
void quantize_progress_end(quantize_progress *p);

/* ---- GPTQ (quantize_gptq.c, quantize_linalg.c) ---- */

typedef struct quantize_gptq {
    const char *path;        /* of the text; NULL: no GPTQ                                           */
    int32_t chunks;
    float damping;
    bool in_place;           /* columns as they lie                                                  */
    char *text;
    size_t n_text;
    qn_gptq *gptq;
    quantize_progress progress;
} quantize_gptq;
/** Is this build able to, and is the text there? Before a large file is opened. @return -1 to go on, else the exit code, after a message */
int quantize_gptq_check(quantize_gptq *g);
/** Take over the layers of `q`. @param path  of the source */
qn_status quantize_gptq_open(quantize_gptq *g, qn_quantize *q, const char *path, int32_t n_threads, qn_err *err);
void quantize_gptq_close(quantize_gptq *g);
/** @return false where there is no OpenBLAS on the machine. @param n_threads 0: as many as OpenBLAS likes */
bool quantize_linalg(qn_linalg *out, int32_t n_threads);

/* ---- report (quantize_report.c, quantize_json.c) ---- */

typedef struct quantize_report {
    const char *in, *out;    /* out NULL: nothing was written                                        */
    const char *type;
    const qn_quantize *quantize;
    double seconds;          /* it took; 0: nothing was done                                         */
} quantize_report;

void quantize_text(const quantize_report *r);
/** @return an exit code: memory may run short */
int quantize_json(const quantize_report *r);

#endif

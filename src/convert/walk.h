/**
 * A calibration text that goes through a model stage by stage: every window has registers of its own, so that all of them can stand before
 * the same matrices at once. These may then be looked at, replaced, and passed.
 */
#ifndef QN_CONVERT_WALK_H
#define QN_CONVERT_WALK_H

#include "src/convert/calib.h"
#include "src/run/engine.h"

typedef struct qn_walk {
    qn_engine *engine;       /* its plan is the walk's own: matrices of stages ahead may be replaced */
    qn_calib text;
    qn_kv *kv;               /* of the window that is under way: a layer's keys and values are needed between two products alone */
    float *regs;             /* [n_chunks][chunk_floats]                                     */
    size_t regs_bytes, chunk_floats;
    int32_t *position;       /* [n_ctx] 0, 1, 2 ...                                          */
    int32_t *last;           /* [n_ctx] n_ctx - 1                                            */
    qn_kv **owner;           /* [n_ctx]                                                      */
    size_t i_stage;          /* the matmul stage that all windows stand before; n_stages: none is left */
} qn_walk;

/** Walk to the first matmul stage. The model is borrowed; `text` is moved from. @param opts  n_threads and cpu count */
qn_status qn_walk_open(qn_walk *w, const qn_model *model, qn_calib *text, const qn_engine_opts *opts, qn_err *err);
void qn_walk_close(qn_walk *w);

/** The stage that stands, or NULL at the end. */
qn_stage *qn_walk_stage(const qn_walk *w);
/** Show the rows of window i before the stage that stands. The observer must return false. */
void qn_walk_observe(qn_walk *w, int64_t i_chunk, const qn_observer *o);
/** Pass the stage with window i, up to the next matmul stage. After all windows: qn_walk_next. */
void qn_walk_pass(qn_walk *w, int64_t i_chunk);
void qn_walk_next(qn_walk *w);

#endif

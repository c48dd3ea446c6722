/* GPTQ in the quantising pipeline. The public part (open, close, options) is declared in quern.h. */
#ifndef QN_CONVERT_GPTQ_HOOK_H
#define QN_CONVERT_GPTQ_HOOK_H

#include "src/convert/quantize_job.h"
#include "src/convert/walk.h"

/** Where a tensor is read in the forward pass, and its rows once they are quantised. */
typedef struct qn_gptq_tensor {
    size_t i_stage;          /* SIZE_MAX: not a matrix of a layer or of the head             */
    int64_t n_rows;          /* of its matrices there                                        */
    uint8_t *bytes;          /* NULL: not yet, or not by this method                         */
    size_t row_bytes;
} qn_gptq_tensor;

/** What the matrices of one stage share: their inputs. */
typedef struct qn_gptq_inputs {
    int64_t n;               /* columns                                                      */
    float *gram;             /* [n][n] X^T X: upper triangle; in the end all of it, damped   */
    double *work;            /* [n][n]                                                       */
    float *carry;            /* [n][n] as qn_gptq_rows wants it                              */
    float *importance;       /* [n]                                                          */
    int32_t *order;          /* [n]                                                          */
} qn_gptq_inputs;

struct qn_gptq {
    qn_quantize *quantize;   /* borrowed                                                     */
    qn_model *model;
    qn_walk walk;
    qn_linalg linalg;
    qn_gptq_tensor *tensor;  /* [n_tensors] of the file                                      */
    int64_t n_tensors, i_current;
    double damping;
    bool act_order;
    uint64_t done, total;    /* windows times stages                                         */
    qn_progress_fn progress;
    void *progress_user;
};

/** Sum over all windows what the stage that stands reads, and factor it. */
qn_status qn_gptq_inputs_open(qn_gptq_inputs *in, qn_gptq *g, qn_err *err);
void qn_gptq_inputs_close(qn_gptq_inputs *in);

/** Quantise one matrix of the stage that stands. @param out  [n_rows] rows of row_bytes */
qn_status qn_gptq_quantize(qn_gptq *g, const qn_gptq_inputs *in, const qn_weight *w, const qn_fmt *fmt, uint8_t *out, size_t row_bytes, qn_err *err);

/** Count one window of one stage. @return QN_ERR_CANCELLED */
qn_status qn_gptq_progress(qn_gptq *g, qn_err *err);

#endif

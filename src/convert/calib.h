/* A calibration text, as windows of tokens that are evaluated each by itself. */
#ifndef QN_CONVERT_CALIB_H
#define QN_CONVERT_CALIB_H

#include "src/base/err.h"

enum { QN_CALIB_CTX = 512 };

typedef struct qn_calib {
    int32_t *token;      /* [n_chunks][n_ctx]                                                */
    int64_t n_chunks;    /* 1 ..                                                             */
    int32_t n_ctx;
} qn_calib;

/**
 * Tokenise `text` as plain text and cut it into windows of n_ctx tokens; what is left at the end is dropped. Where the model puts a BOS in
 * front of a text, every window begins with one, in the place of its first token. llama.cpp's tools cut texts in this way.
 * @param n_ctx     1 ..; 0: 512
 * @param n_chunks  so many windows at most; 0: all
 * @return QN_ERR_ARG when the text is shorter than one window
 */
qn_status qn_calib_open(qn_calib *c, const qn_model *model, qn_str text, int32_t n_ctx, int64_t n_chunks, qn_err *err);
void qn_calib_close(qn_calib *c);

#endif

/**
 * Importance data: for each matrix, the mean of the squares of every column's inputs over a calibration text. It weights the squared
 * error of a quantised row as the products of that row with those inputs would.
 *
 * Files are llama.cpp's: a GGUF with the sums of squares and the number of rows of each tensor, or the older ".dat".
 * The public part (collect, load, save, close) is declared in quern.h.
 */
#ifndef QN_CONVERT_IMATRIX_H
#define QN_CONVERT_IMATRIX_H

#include "src/format/names.h"

/** The data of one tensor. */
typedef struct qn_imatrix_entry {
    qn_str name;             /* owned                                                        */
    int64_t n_cols, n_mats;  /* n_mats: of a tensor of three dimensions (experts)            */
    float *sum;              /* [n_mats][n_cols] of squares                                  */
    float *mean;             /* [n_mats][n_cols] sum / count; where the count is 0: 1        */
    float *count;            /* [n_mats] rows                                                */
} qn_imatrix_entry;

struct qn_imatrix {
    qn_imatrix_entry *entry; /* [n]                                                          */
    size_t n, cap;
    qn_names names;
    uint32_t n_chunks, chunk_tokens; /* 0: the file does not say                             */
    qn_str *dataset;         /* [n_datasets] names of the texts, owned                       */
    size_t n_datasets, cap_datasets;
};

/** qn_imatrix_load over bytes that need not outlive the call. */
qn_status qn_imatrix_load_memory(qn_imatrix **out, const void *bytes, size_t n, qn_err *err);

/* For those who fill one: an empty one, entries one at a time, then the index. */
qn_status qn_imatrix_new(qn_imatrix **out, qn_err *err);
/** A new entry of zeros, with room for all its values. Valid until the next call. NULL: no memory. */
qn_imatrix_entry *qn_imatrix_add(qn_imatrix *m, qn_str name, int64_t n_cols, int64_t n_mats);
qn_status qn_imatrix_add_dataset(qn_imatrix *m, qn_str name, qn_err *err);
/** Check sums and counts, make the means and the index. @return QN_ERR_FORMAT: a negative or infinite value, NaN, a name that is there twice */
qn_status qn_imatrix_finish(qn_imatrix *m, qn_err *err);

#endif

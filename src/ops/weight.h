/* Weights in memory: matrices packed in panels of rows, vectors as float32. */
#ifndef QN_OPS_WEIGHT_H
#define QN_OPS_WEIGHT_H

#include "quant/quant.h"
#include "src/base/pool.h"

/** A matrix of a file's tensor. All zero: absent. */
typedef struct qn_weight {
    const qn_fmt *fmt;
    int64_t i_tensor;        /* in the file                                                  */
    int64_t first_row;       /* of the tensor's rows, where it holds several matrices        */
    int64_t n_rows, n_cols;
    int64_t n_panels;
    size_t panel_bytes;      /* from one panel of 16 rows to the next                        */
    size_t n_bytes;          /* of all panels                                                */
    uint8_t *panels;         /* NULL until packed; 64-byte aligned; owned by the arena       */
} qn_weight;

/** A vector of a file's tensor. All zero: absent. */
typedef struct qn_vector {
    const qn_fmt *fmt;       /* of the file                                                  */
    int64_t i_tensor;
    int64_t first, n;        /* elements of the tensor                                       */
    float *w;                /* [n]; NULL until loaded; owned by the arena                   */
} qn_vector;

static inline bool qn_weight_present(const qn_weight *w)
{
    return w->fmt != NULL;
}

/** Describe rows [first, first + n_rows) of tensor i (of all its slices one after another) as a matrix and size its panels. The shape must have been checked. */
qn_status qn_weight_bind(qn_weight *w, const qn_file *file, int64_t i_tensor, int64_t first, int64_t n_rows, qn_err *err);
/** The same for a matrix of this format that comes from somewhere else. @return false when its size does not fit */
bool qn_weight_describe(qn_weight *w, const qn_fmt *fmt, int64_t i_tensor, int64_t n_rows, int64_t n_cols);
/** Describe elements [first, first + n) of tensor i as a vector. */
qn_status qn_vector_bind(qn_vector *v, const qn_file *file, int64_t i_tensor, int64_t first, int64_t n, qn_err *err);

/** Does this format multiply integers (A16 or A8; else float32)? */
bool qn_weight_reads_a16(const qn_weight *w);

/** Bytes in the arena, 64-byte aligned. */
size_t qn_vector_bytes(const qn_vector *v);

/** Pack panels [begin, end) into w->panels, on all threads of the pool. @param bytes  the weight's first row as it is in the file */
void qn_weight_pack(const qn_weight *w, const uint8_t *bytes, int64_t begin, int64_t end, qn_pool *pool);
/** Bytes in the file of a panel's rows. */
size_t qn_weight_file_bytes(const qn_weight *w);
/** Bytes in the file before the weight's first row. */
size_t qn_weight_file_offset(const qn_weight *w);
/** Decode the vector's part of the tensor's bytes into v->w. */
void qn_vector_load(const qn_vector *v, const uint8_t *bytes);

#endif

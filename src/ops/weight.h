/* Weights in memory: matrices packed in panels of rows, vectors as float32. */
#ifndef QN_OPS_WEIGHT_H
#define QN_OPS_WEIGHT_H

#include "quant/quant.h"
#include "src/base/map.h"
#include "src/base/pool.h"

#include <stdatomic.h>

/**
 * A matrix of a file's tensor, or several of one shape that lie one behind the other in it: its parts (experts, heads). Each part has panels
 * of its own, the last one filled up with rows of zeros. All zero: absent.
 */
typedef struct qn_weight {
    const qn_fmt *fmt;
    int64_t i_tensor;        /* in the file                                                  */
    int32_t n_parts;         /* 1: a matrix                                                  */
    int64_t n_rows, n_cols;  /* of a part                                                    */
    int64_t first_row, part_rows; /* in the tensor: where part 0 begins, and from one part to the next */
    int64_t n_panels;        /* of a part                                                    */
    size_t panel_bytes;      /* from one panel of 16 rows to the next                        */
    size_t n_bytes;          /* of all panels of all parts                                   */
    uint8_t *panels;         /* NULL until packed; 64-byte aligned; owned by the arena       */
    /* Of a table whose rows are decoded where the file has them, n_bytes 0; and of parts that are packed when they are first used (src/ops/pairs.h) */
    bool in_file, on_use;
    bool turned;             /* the file has what are columns here as rows, n_cols of n_rows numbers from first_row on (src/ops/weight_encode.h) */
    const qn_map *map;       /* open as long as the arena                                    */
    size_t map_at;           /* where the tensor is in it                                    */
    atomic_uchar *state;     /* [n_parts] in the arena                                       */
} qn_weight;

/** A vector of a file's tensor. All zero: absent. */
typedef struct qn_vector {
    const qn_fmt *fmt;       /* of the file                                                  */
    int64_t i_tensor;
    int64_t first, n;        /* elements of the tensor                                       */
    int64_t across;          /* above 0: the file has them as rows of so many, w has what were columns one after another */
    float *w;                /* [n]; NULL until loaded; owned by the arena                   */
} qn_vector;

static inline bool qn_weight_present(const qn_weight *w)
{
    return w->fmt != NULL;
}

/** Rows of a tensor, those of all its slices one after another, that make up a weight. */
typedef struct qn_slice {
    int64_t first, n_rows;   /* of part 0                                                    */
    int32_t n_parts;
    int64_t stride;          /* rows from one part to the next                               */
} qn_slice;

/** Describe rows of tensor i as matrices [n_rows][n_cols] and size their panels. The shape must have been checked. */
qn_status qn_weight_bind(qn_weight *w, const qn_file *file, int64_t i_tensor, const qn_slice *s, qn_err *err);
/** The same for a matrix of this format that comes from somewhere else. @return false when its size does not fit */
bool qn_weight_describe(qn_weight *w, const qn_fmt *fmt, int64_t i_tensor, int64_t n_rows, int64_t n_cols);
/** Describe elements [first, first + n) of tensor i as a vector. */
qn_status qn_vector_bind(qn_vector *v, const qn_file *file, int64_t i_tensor, int64_t first, int64_t n, qn_err *err);

/** Let it be loaded with its columns one after another. @param n_cols  of a row in the file, up to QN_MAX_ACROSS */
qn_status qn_vector_turn(qn_vector *v, int64_t n_cols, qn_err *err);
enum { QN_MAX_ACROSS = 1024 };

/** Let it stay in the file: a table of which single rows are read. */
void qn_weight_leave(qn_weight *w);
/** Decode a row of a table that stays in the file, once it has been placed. @param out  [n_cols] */
void qn_weight_read_row(const qn_weight *w, int64_t row, float *out);

/** Does this format multiply integers (A16 or A8; else float32)? */
bool qn_weight_reads_a16(const qn_weight *w);

/** Bytes in the arena, 64-byte aligned. */
size_t qn_vector_bytes(const qn_vector *v);
size_t qn_weight_bytes(const qn_weight *w);

/** Give the weight its place in the arena, qn_weight_bytes(w) long and zero. One with `on_use` or `in_file` needs no more to be done.
 *  @param map  holds the tensor from byte map_at on */
void qn_weight_place(qn_weight *w, const qn_map *map, size_t map_at, uint8_t *place);
/** Pack panels [begin, end), counted through all parts, into w->panels, on all threads of the pool. @param bytes  the whole tensor as it is in the file */
void qn_weight_pack(const qn_weight *w, const uint8_t *bytes, int64_t begin, int64_t end, qn_pool *pool);
/** The same on the calling thread. */
void qn_weight_pack_panels(const qn_weight *w, const uint8_t *bytes, int64_t begin, int64_t end);
/** The tensor's row that is the first of a panel, counted through all parts. */
static inline int64_t qn_weight_row_at(const qn_weight *w, int64_t i_panel)
{
    return w->first_row + i_panel / w->n_panels * w->part_rows + i_panel % w->n_panels * 16;
}
/** Where the rows of a panel, counted through all parts, begin in the tensor. */
size_t qn_weight_file_at(const qn_weight *w, int64_t i_panel);
/** Bytes of a part in the tensor. */
size_t qn_weight_part_file_bytes(const qn_weight *w);
/** Decode the vector's part of the tensor's bytes into v->w. */
void qn_vector_load(const qn_vector *v, const uint8_t *bytes);

#endif

/* Inside qn_quantize: the plan, the new files, the pipeline. */
#ifndef QN_CONVERT_QUANTIZE_JOB_H
#define QN_CONVERT_QUANTIZE_JOB_H

#include "src/convert/encode_hook.h"
#include "src/convert/importance.h"
#include "src/convert/recipe.h"
#include "src/format/gguf.h"
#include "src/format/writer.h"
#include "simd/kernels.h"

/** What happens to one tensor. */
typedef struct qn_job {
    const qn_fmt *to, *wanted;
    qn_recipe_tensor facts;
    int32_t i_file;          /* which new file it goes to                                    */
    size_t i_out;            /* its place there                                              */
    uint64_t n_bytes;        /* it takes there                                               */
    bool has_importance;
    double error;            /* relative, once it is written                                 */
} qn_job;

struct qn_quantize {
    qn_file *file;
    const qn_recipe *recipe;
    qn_recipe_model model;
    const qn_imatrix *imatrix; /* borrowed; NULL: none                                       */
    char *imatrix_name;      /* NULL: not known                                              */
    qn_job *job;             /* [n_jobs] by index of the tensor                              */
    int64_t *order;          /* [n_jobs] in which they are done                              */
    int64_t n_jobs;
    int32_t n_files;
    uint64_t file_bytes;     /* of all new files                                             */
    int32_t n_threads;
    qn_progress_fn progress;
    void *progress_user;
    qn_kernels kernels;      /* of the highest level; every level encodes to the same bytes  */
    qn_encode_hook hook;     /* begin NULL: none                                             */
};

/** Choose formats, and the order of the work. q->file and q->imatrix are there; the rest is filled in. */
qn_status qn_quantize_plan(qn_quantize *q, const qn_quantize_opts *opts, qn_err *err);

/**
 * Begin new file i with its keys and tensors.
 * @param path  NULL: nothing is written; the writer tells the size the file will have
 */
qn_status qn_quantize_announce(const qn_quantize *q, int32_t i, const char *path, qn_writer **out, qn_err *err);

/** Take all tensors into the new files. @param writers  [n_files], reserved */
qn_status qn_quantize_tensors(qn_quantize *q, qn_writer *const *writers, qn_err *err);

static inline const qn_gguf_tensor *qn_quantize_source(const qn_quantize *q, int64_t i)
{
    return &q->file->tensors[i];
}

#endif

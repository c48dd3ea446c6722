/* What an open model holds. */
#ifndef QN_RUN_MODEL_H
#define QN_RUN_MODEL_H

#include "models/model.h"
#include "src/token/token.h"

struct qn_model {
    qn_file *file;
    qn_vocab *vocab;
    qn_net net;              /* empty when the model was opened for its vocabulary alone     */
    bool has_net;
    void *arena;             /* packed weights and vectors                                   */
    size_t arena_bytes;
    uint64_t n_params, tensor_bytes;
    char *name, *arch;
    qn_log_fn log;           /* NULL: nobody listens                                         */
    void *log_user;
};

/** Tell who opened the model what it should know, in one sentence. */
void qn_model_note(const qn_model *m, const char *fmt, ...) QN_PRINTF(2, 3);

enum { QN_CTX_DEFAULT = 4096, QN_CHUNK_DEFAULT = 512, QN_CHUNK_MAX = 4096, QN_SESSIONS_MAX = 4096 };

/** Settings with their defaults filled in, checked. @return QN_ERR_ARG with the range. */
qn_status qn_resolve_sizes(const qn_net *net, int32_t *n_ctx, int32_t *n_chunk, int32_t *n_sessions, qn_err *err);

/** Describe the matrices in the main format of a type that weights can be quantised to, where that takes less memory. @return QN_ERR_ARG: unknown */
qn_status qn_net_requantize(qn_net *net, const qn_file *file, const char *type, qn_err *err);

#endif

/* Memory of one render or one compiled template: handed out piece by piece, given back at once, with a limit on the whole. */
#ifndef QN_CHAT_JARENA_H
#define QN_CHAT_JARENA_H

#include "src/base/err.h"

typedef struct qn_jchunk qn_jchunk;

typedef struct qn_jarena {
    qn_jchunk *chunks;
    char *at, *end;      /* free bytes of the chunk that small pieces come from                 */
    size_t total, max_total;
    qn_status fail;      /* why the last piece was refused: QN_ERR_NOMEM, QN_ERR_LIMIT          */
} qn_jarena;

/** @param max_total bytes of all chunks together */
void qn_jarena_init(qn_jarena *a, size_t max_total);
void qn_jarena_free(qn_jarena *a);
/** n bytes on a 16-byte border, not cleared. NULL when refused. */
void *qn_jarena_raw(qn_jarena *a, size_t n);
/** The same, cleared. */
void *qn_jarena_new(qn_jarena *a, size_t n);
/** Make a piece of n_old bytes n_new bytes long; it may move. Long pieces grow without leaving a copy behind. */
void *qn_jarena_grow(qn_jarena *a, void *p, size_t n_old, size_t n_new);

#endif

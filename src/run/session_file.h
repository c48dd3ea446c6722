/* Sessions as files: GGUF, with the blocks of keys and values as its tensors. */
#ifndef QN_RUN_SESSION_FILE_H
#define QN_RUN_SESSION_FILE_H

#include "src/run/engine.h"

/** Become the session that an open file holds; qn_session_load without its path. */
qn_status qn_session_load_file(qn_session *s, const qn_file *file, qn_str *note, qn_err *err);
/** What makes two models the same for keys and values: architecture, its settings, all tensors, and samples of their data. @param out  32 hexadecimal digits */
void qn_model_fingerprint(const qn_model *m, char out[33]);

#endif

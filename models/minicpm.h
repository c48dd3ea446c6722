/* Scales that the MiniCPM architectures share. */
#ifndef QN_MINICPM_H
#define QN_MINICPM_H

#include "models/model.h"

enum { QN_MINICPM_KEYS = 3 };
extern const qn_key_row qn_minicpm_keys[QN_MINICPM_KEYS];
/** Hook: `adjust`. */
qn_status qn_minicpm_adjust(qn_net *net, const qn_file *file, qn_err *err);

#endif

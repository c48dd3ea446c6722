/* What the dense Hunyuan architectures share. */
#ifndef QN_HUNYUAN_H
#define QN_HUNYUAN_H

#include "models/model.h"

enum { QN_HUNYUAN_KEYS = 1 };
extern const qn_key_row qn_hunyuan_keys[QN_HUNYUAN_KEYS];
/** Hook: `adjust`. */
qn_status qn_hunyuan_adjust(qn_net *net, const qn_file *file, qn_err *err);

#endif

/* What the Granite architectures share: keys of scales, and what they mean. */
#ifndef QN_GRANITE_H
#define QN_GRANITE_H

#include "models/model.h"

enum { QN_GRANITE_KEYS = 4 };
extern const qn_key_row qn_granite_keys[QN_GRANITE_KEYS];
/** An `adjust` hook. */
qn_status qn_granite_adjust(qn_net *net, const qn_file *file, qn_err *err);

#endif

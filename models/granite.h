/* What the Granite architectures share: keys of scales and of angles, and what they mean. */
#ifndef QN_GRANITE_H
#define QN_GRANITE_H

#include "models/model.h"

enum { QN_GRANITE_SCALES = 4, QN_GRANITE_KEYS };
extern const qn_key_row qn_granite_keys[QN_GRANITE_KEYS];
/** `adjust` hooks, of the keys of scales and of all. */
qn_status qn_granite_adjust_scales(qn_net *net, const qn_file *file, qn_err *err);
qn_status qn_granite_adjust(qn_net *net, const qn_file *file, qn_err *err);

#endif

/* What the architectures with DeepSeek's latent attention and experts share. */
#ifndef QN_DEEPSEEK_H
#define QN_DEEPSEEK_H

#include "models/model.h"

enum { QN_DEEPSEEK_KEYS = 3 };
extern const qn_key_row qn_deepseek_keys[QN_DEEPSEEK_KEYS];
extern const qn_expert_rules qn_deepseek_experts;
/** Hooks: `layers` and `adjust`. */
qn_status qn_deepseek_layers(qn_net *net, const qn_file *file, qn_err *err);
qn_status qn_deepseek_adjust(qn_net *net, const qn_file *file, qn_err *err);

#endif

/* Which architectures have a name like one that is not there. */
#ifndef QN_MODELS_NEAR_H
#define QN_MODELS_NEAR_H

#include "models/model.h"

/** Up to three names, the nearest first, as words of a sentence. @return false: none is near, `out` is as it was */
bool qn_arch_near(qn_str name, char *out, size_t n_out);

#endif

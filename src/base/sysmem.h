/* How much memory this process may still take. */
#ifndef QN_BASE_SYSMEM_H
#define QN_BASE_SYSMEM_H

#include <stdint.h>

/** Bytes: the system's estimate of what is available, and what the control group leaves, whichever is less. UINT64_MAX where it
 *  cannot be told. */
uint64_t qn_memory_available(void);

#endif

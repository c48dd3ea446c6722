/* Numbers that nobody can foresee. */
#ifndef QN_BASE_ENTROPY_H
#define QN_BASE_ENTROPY_H

#include <stdint.h>

/** 64 bits from the system. Before it has gathered any, after a start: bits of the clock, which differ from run to run. */
uint64_t qn_entropy(void);

#endif

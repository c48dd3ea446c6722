/* SipHash: a keyed hash whose collisions cannot be made by who does not know the key. */
#ifndef QN_BASE_HASH_H
#define QN_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct qn_hash {
    uint64_t lo, hi;
} qn_hash;

static inline bool qn_hash_equal(qn_hash a, qn_hash b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

/** SipHash-2-4 with 128 bits of output (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012, and its 128-bit variant). The
 *  bytes of the result are lo, then hi, least significant first. */
qn_hash qn_hash_of(qn_hash key, const void *bytes, size_t n);

#endif

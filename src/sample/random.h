/* The random stream of a sampler: the same numbers on every machine for a seed. */
#ifndef QN_SAMPLE_RANDOM_H
#define QN_SAMPLE_RANDOM_H

#include <stdint.h>

/** xoshiro256** 1.0: Blackman and Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS 47 (2021). Period 2^256 - 1. */
typedef struct qn_random {
    uint64_t s[4];
} qn_random;

/** The state is the first four outputs of SplitMix64 (Steele, Lea, Flood 2014) from `seed`, as the generator's authors advise. */
void qn_random_seed(qn_random *r, uint64_t seed);
uint64_t qn_random_next(qn_random *r);
/** Uniform in [0, 1): the upper 53 bits. */
double qn_random_unit(qn_random *r);
/** A seed from the system, below 2^53, so that every reader of JSON keeps its digits. */
uint64_t qn_random_system_seed(void);

#endif

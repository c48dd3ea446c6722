/* Floats compared as integers, and the lowest and highest of groups of them: an index into a large row of logits. */
#ifndef QN_BASE_RANK_H
#define QN_BASE_RANK_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/** Floats as integers of the same order; -0 equals 0, NaN is beyond the infinities. Signed: what SSE2 can compare. */
static inline int32_t qn_float_rank(float x)
{
    const float y = x + 0.0f;
    int32_t i;
    memcpy(&i, &y, 4);
    return i ^ (int32_t)((uint32_t)(i >> 31) >> 1);
}

/** The float of a rank. */
static inline float qn_rank_float(int32_t rank)
{
    const int32_t i = rank ^ (int32_t)((uint32_t)(rank >> 31) >> 1);
    float x;
    memcpy(&x, &i, 4);
    return x;
}

/** Ranks of the lowest and the highest of a group. */
typedef struct qn_extremes {
    int32_t lo, hi;
} qn_extremes;

/** Logits in a group: those that a thread computes next to each other, still in its nearest cache. */
enum { QN_RANK_GROUP = 256 };

static inline qn_extremes qn_extremes_of(const float *x, int64_t n)
{
    qn_extremes e = { INT32_MAX, INT32_MIN };
    for (int64_t i = 0; i < n; i++) {
        const int32_t k = qn_float_rank(x[i]);
        e.lo = k < e.lo ? k : e.lo;
        e.hi = k > e.hi ? k : e.hi;
    }
    return e;
}

static inline qn_extremes qn_extremes_join(const qn_extremes *group, int64_t n)
{
    qn_extremes e = { INT32_MAX, INT32_MIN };
    for (int64_t i = 0; i < n; i++) {
        e.lo = group[i].lo < e.lo ? group[i].lo : e.lo;
        e.hi = group[i].hi > e.hi ? group[i].hi : e.hi;
    }
    return e;
}

#endif

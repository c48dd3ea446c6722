/* Keys or values of one span of positions, as attention's loops read them: blocks as they lie, F16 or F32, or widened into scratch memory. */
#ifndef QN_SIMD_ATTN_SPAN_H
#define QN_SIMD_ATTN_SPAN_H

#include "simd/kernels.h"

enum { QN_SPAN_BLOCKS = QN_ATTN_SPAN / QN_KV_BLOCK };

typedef struct qn_attn_side {
    const void *const *blocks;                              /* of the call                              */
    void (*load)(const void *block, int32_t dim, float *out); /* NULL: blocks are read as they lie      */
    int32_t dim;
    size_t bytes;                                           /* of a block                               */
    bool f16;                                               /* what `at` leads to; else float32         */
    const void *const *at;                                  /* block b is at[b - first]                 */
    int32_t first;
    const void *wide[QN_SPAN_BLOCKS];
} qn_attn_side;

static inline qn_attn_side qn_attn_keys(const qn_attn_args *a)
{
    return (qn_attn_side){ .blocks = a->k_blocks, .load = a->k_row->kind == QN_KV_CODED ? a->k_row->load_k : NULL, .dim = a->head_dim,
                           .bytes = qn_kv_block_bytes(a->k_row, a->head_dim), .f16 = a->k_row->kind == QN_KV_F16, .at = a->k_blocks };
}

static inline qn_attn_side qn_attn_values(const qn_attn_args *a)
{
    return (qn_attn_side){ .blocks = a->v_blocks, .load = a->v_row->kind == QN_KV_CODED ? a->v_row->load_v : NULL, .dim = a->head_dim_v,
                           .bytes = qn_kv_block_bytes(a->v_row, a->head_dim_v), .f16 = a->v_row->kind == QN_KV_F16, .at = a->v_blocks };
}

static inline const void *qn_attn_block(const qn_attn_side *s, int32_t b)
{
    return s->at[b - s->first];
}

/** Blocks of the span from `base` that some row sees, a bit each. Row i sees [lo[i], hi[i]] of the span; lo > hi: nothing. */
static inline uint32_t qn_attn_seen_blocks(const int32_t *lo, const int32_t *hi, int32_t n, int32_t base)
{
    uint32_t seen = 0;
    for (int32_t i = 0; i < n; i++)
        if (lo[i] <= hi[i]) seen |= (2u << (hi[i] - base) / QN_KV_BLOCK) - (1u << (lo[i] - base) / QN_KV_BLOCK);
    return seen;
}

/** The next run of ones of `seen` from bit *from on. @return false: there is none; else bits [*from, *to] are ones */
static inline bool qn_attn_next_run(uint32_t seen, int32_t *from, int32_t *to)
{
    while (*from < QN_SPAN_BLOCKS && !(seen >> *from & 1)) ++*from;
    for (*to = *from; seen >> (*to + 1) & 1; ++*to) {}
    return *from < QN_SPAN_BLOCKS;
}

static inline void qn_attn_fetch(const qn_attn_side *s, int32_t b)
{
    for (size_t i = 0; i < s->bytes; i += 64) __builtin_prefetch((const char *)s->blocks[b] + i);
}

/**
 * Make the seen blocks of the span from `base` ready.
 * @param scratch    [QN_ATTN_SPAN][dim], 64-byte aligned
 * @param next_last  a decode step reads keys and values once, from memory, in pieces of a few KiB that the hardware's prefetch does not join: keys
 *                   up to this block are asked for a span before they are read, and the values beside those that are read now; -1: none
 */
static inline void qn_attn_open(qn_attn_side *s, int32_t base, uint32_t seen, float *scratch, const qn_attn_side *values, int32_t next_last)
{
    if (!s->load) return;
    s->at = s->wide;
    s->first = base / QN_KV_BLOCK;
    for (int32_t b = 0; b < QN_SPAN_BLOCKS; b++, scratch += QN_KV_BLOCK * s->dim) {
        if (!(seen >> b & 1)) continue;
        if (s->first + b + QN_SPAN_BLOCKS <= next_last) qn_attn_fetch(s, s->first + b + QN_SPAN_BLOCKS);
        if (next_last >= 0) qn_attn_fetch(values, s->first + b);
        s->load(s->blocks[s->first + b], s->dim, scratch);
        s->wide[b] = scratch;
    }
}

#endif

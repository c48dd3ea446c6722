/* The blocks of one group: who holds them, and under which key they are found. */
#ifndef QN_KV_BLOCKS_H
#define QN_KV_BLOCKS_H

#include "src/base/err.h"
#include "src/base/hash.h"

typedef struct kv_block {
    qn_hash key;
    int32_t n_refs;
    bool is_published;
    int32_t next;            /* in its bucket, or in the list of free blocks                 */
    int32_t older, newer;    /* among the idle                                               */
} kv_block;

/** A block is free (held by nobody, not published), idle (held by nobody, published), or held. */
typedef struct kv_blocks {
    uint8_t *memory;         /* [n][block_bytes]                                             */
    size_t block_bytes;
    int32_t n;
    int32_t n_used;          /* blocks from here on have never been touched                  */
    kv_block *block;         /* [n]                                                          */
    int32_t *bucket;         /* [n_buckets] first block; a power of two                      */
    int32_t n_buckets;
    int32_t free, n_free;    /* a list, and all that are free                                */
    int32_t oldest, newest, n_idle;
    uint64_t n_evicted;
} kv_blocks;

qn_status qn_blocks_open(kv_blocks *b, size_t block_bytes, int32_t n, qn_err *err);
void qn_blocks_close(kv_blocks *b);

/** A block to write into, all zeros and held once: a free one, or the one idle longest. @return -1: all are held */
int32_t qn_blocks_take(kv_blocks *b);
void qn_blocks_hold(kv_blocks *b, int32_t i);
/** Let go. The last to do so leaves it free or idle. */
void qn_blocks_drop(kv_blocks *b, int32_t i);
/** May its holder write into it? */
bool qn_blocks_is_own(const kv_blocks *b, int32_t i);
/** @return the block published under a key, or -1 */
int32_t qn_blocks_find(const kv_blocks *b, qn_hash key);
/** Publish a held block. Where the key is there already, nothing happens. */
void qn_blocks_publish(kv_blocks *b, int32_t i, qn_hash key);
void qn_blocks_unpublish(kv_blocks *b, int32_t i);

static inline uint8_t *qn_blocks_at(const kv_blocks *b, int32_t i)
{
    return b->memory + (size_t)i * b->block_bytes;
}

#endif

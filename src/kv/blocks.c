#include "src/kv/blocks.h"

#include "src/base/mem.h"

#include <stdlib.h>
#include <string.h>

qn_status qn_blocks_open(kv_blocks *b, size_t block_bytes, int32_t n, qn_err *err)
{
    size_t n_bytes;
    *b = (kv_blocks){ .block_bytes = block_bytes, .n = n, .n_buckets = 16, .free = -1, .n_free = n, .oldest = -1, .newest = -1 };
    while (b->n_buckets < n) b->n_buckets *= 2;
    b->block = qn_new((size_t)n, sizeof *b->block);
    b->bucket = qn_new((size_t)b->n_buckets, sizeof *b->bucket);
    if (!b->block || !b->bucket || !qn_size_mul(block_bytes, (size_t)n, &n_bytes))
        return qn_fail(err, QN_ERR_NOMEM, "no memory for %d blocks of a KV cache", n);
    memset(b->bucket, -1, (size_t)b->n_buckets * sizeof *b->bucket);
    void *memory = NULL;
    QN_TRY(qn_pages_new(&memory, n_bytes, "the KV cache", err));
    b->memory = memory;
    return QN_OK;
}

void qn_blocks_close(kv_blocks *b)
{
    void *memory = b->memory;
    qn_pages_free(&memory, b->block_bytes * (size_t)b->n);
    free(b->block);
    free(b->bucket);
    *b = (kv_blocks){ 0 };
}

static int32_t *bucket_of(const kv_blocks *b, qn_hash key)
{
    return &b->bucket[key.lo & (uint64_t)(b->n_buckets - 1)];
}

static void join_idle(kv_blocks *b, int32_t i)
{
    b->block[i].older = b->newest;
    b->block[i].newer = -1;
    if (b->newest >= 0) b->block[b->newest].newer = i;
    else b->oldest = i;
    b->newest = i;
    b->n_idle++;
}

static void leave_idle(kv_blocks *b, int32_t i)
{
    const int32_t older = b->block[i].older, newer = b->block[i].newer;
    if (older >= 0) b->block[older].newer = newer;
    else b->oldest = newer;
    if (newer >= 0) b->block[newer].older = older;
    else b->newest = older;
    b->n_idle--;
}

int32_t qn_blocks_take(kv_blocks *b)
{
    int32_t i = b->free;
    bool was_used = true;
    if (i >= 0) {
        b->free = b->block[i].next;
        b->n_free--;
    } else if (b->n_used < b->n) {
        i = b->n_used++;
        was_used = false;
        b->n_free--;
    } else if ((i = b->oldest) >= 0) {
        leave_idle(b, i);
        qn_blocks_unpublish(b, i);
        b->n_evicted++;
    } else {
        return -1;
    }
    b->block[i] = (kv_block){ .n_refs = 1 };
    /* What somebody else wrote is not to be found behind the end of a text that is saved. */
    if (was_used) memset(qn_blocks_at(b, i), 0, b->block_bytes);
    return i;
}

void qn_blocks_hold(kv_blocks *b, int32_t i)
{
    if (b->block[i].n_refs++ == 0) leave_idle(b, i); /* a free block is not held but taken */
}

void qn_blocks_drop(kv_blocks *b, int32_t i)
{
    kv_block *k = &b->block[i];
    if (--k->n_refs > 0) return;
    if (k->is_published) {
        join_idle(b, i);
        return;
    }
    k->next = b->free;
    b->free = i;
    b->n_free++;
}

bool qn_blocks_is_own(const kv_blocks *b, int32_t i)
{
    return b->block[i].n_refs == 1 && !b->block[i].is_published;
}

int32_t qn_blocks_find(const kv_blocks *b, qn_hash key)
{
    int32_t i = *bucket_of(b, key);
    while (i >= 0 && !qn_hash_equal(b->block[i].key, key)) i = b->block[i].next;
    return i;
}

void qn_blocks_publish(kv_blocks *b, int32_t i, qn_hash key)
{
    kv_block *k = &b->block[i];
    if (k->is_published || qn_blocks_find(b, key) >= 0) return;
    int32_t *bucket = bucket_of(b, key);
    k->key = key;
    k->is_published = true;
    k->next = *bucket;
    *bucket = i;
}

void qn_blocks_unpublish(kv_blocks *b, int32_t i)
{
    kv_block *k = &b->block[i];
    int32_t *at = bucket_of(b, k->key);
    while (*at != i) at = &b->block[*at].next;
    *at = k->next;
    k->is_published = false;
}

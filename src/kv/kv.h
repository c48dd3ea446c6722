/**
 * The KV cache: a pool of blocks of 16 positions, and timelines that hold blocks of it (Kwon et al. 2023, "PagedAttention").
 *
 * Layers with the same window form a group. A block holds, for every layer of its group and every KV head, the keys and
 * then the values, each as its format lays it out (simd/kernels.h). A timeline's table says for each group where its block b,
 * positions [16b, 16b + 16), lies; a group with a sliding window keeps a ring of blocks that is just long enough.
 *
 * A full block is published under a keyed hash of all tokens up to its end. Whoever comes with the same tokens holds the same block;
 * a block that nobody holds stays until its memory is needed, the one left alone longest going first. Nobody writes into a block that
 * is published or held twice: who has to gets a copy first.
 *
 * Layers without keys, whose memory of the past is a state of fixed size, have it in the timeline; copies of it at the ends of blocks are
 * published likewise.
 *
 * A pool and its timelines serve one thread at a time.
 */
#ifndef QN_KV_H
#define QN_KV_H

#include "src/base/err.h"

enum { QN_KV_POSITIONS = 16 };

typedef struct qn_kv_layer {
    int32_t n_head_kv;       /* 0: a layer with a state alone                                */
    size_t k_bytes, v_bytes; /* of a head's K and V at 16 positions: multiples of 64         */
    int32_t window;          /* positions a token sees, itself included; 0: all              */
    int64_t state_floats;    /* of a layer with a state; 0: none                             */
} qn_kv_layer;

typedef struct qn_kv_layout qn_kv_layout;
typedef struct qn_kv_pool qn_kv_pool;
typedef struct qn_kv qn_kv;

/** @param n_ctx positions of a timeline  @param n_chunk positions that one step may add */
qn_status qn_kv_layout_open(qn_kv_layout **out, const qn_kv_layer *layers, int32_t n_layer, int32_t n_ctx, int32_t n_chunk, qn_err *err);
void qn_kv_layout_close(qn_kv_layout **l);
/** Bytes that one timeline of n_ctx positions takes: its blocks and its state. */
uint64_t qn_kv_layout_bytes(const qn_kv_layout *l);

/** Blocks for `n_timelines` (1 or more, a fraction of one more counts) of n_ctx positions. The layout is borrowed. Memory is reserved here and
 *  touched as blocks are used. */
qn_status qn_kv_pool_open(qn_kv_pool **out, const qn_kv_layout *layout, double n_timelines, qn_err *err);
/** Timelines on it must have been closed. */
void qn_kv_pool_close(qn_kv_pool **pool);

/** Blocks of the group that has least left. */
typedef struct qn_kv_pool_info {
    int32_t n_blocks, n_free; /* free: never used, or nothing worth keeping in it            */
    int32_t n_idle;           /* held by nobody, kept for who comes with the same tokens     */
    uint64_t n_evicted;       /* idle blocks that have given way, all groups                 */
    uint64_t n_copied;        /* blocks copied before a write, all groups                    */
    uint64_t bytes;           /* of the blocks of all groups                                 */
    uint64_t state_bytes;     /* of a timeline's own state, beside the pool                  */
} qn_kv_pool_info;
void qn_kv_pool_get_info(const qn_kv_pool *pool, qn_kv_pool_info *out);

/** An empty timeline with a table for n_ctx positions; the pool is borrowed. */
qn_status qn_kv_open(qn_kv **out, qn_kv_pool *pool, qn_err *err);
void qn_kv_close(qn_kv **kv);

int32_t qn_kv_position(const qn_kv *kv);
/** [position] tokens so far; borrowed until the timeline changes. */
const int32_t *qn_kv_tokens(const qn_kv *kv);

/** K and V of one head in the block that holds `position`. */
void *qn_kv_k(const qn_kv *kv, int32_t i_layer, int32_t i_head, int32_t position);
void *qn_kv_v(const qn_kv *kv, int32_t i_layer, int32_t i_head, int32_t position);
/** The state of a layer at the timeline's position: [state_floats], zeros at position 0. A step's stages move it on in place. */
float *qn_kv_state(const qn_kv *kv, int32_t i_layer);

/** Has the model layers with a state? */
bool qn_kv_has_state(const qn_kv *kv);

/** Make room for positions up to `end` - 1. A step writes them, and then commits; a step that failed has done no harm.
 *  @return false: the pool has no block left; the timeline keeps its positions */
bool qn_kv_reserve(qn_kv *kv, int32_t end);
/** A step is complete: `n` tokens more are valid. Blocks that are full now are published. */
void qn_kv_commit(qn_kv *kv, const int32_t *tokens, int32_t n);
/** A step was stopped on its way. Keys are as before; a state is lost, so that the timeline falls back to where one is kept. */
void qn_kv_abandon(qn_kv *kv);
/** Blocks that the pool lacks for a timeline to get from its position to `end`, in the group that lacks most; below zero: so many it has
 *  to spare. At or below zero, qn_kv_reserve will succeed. */
int32_t qn_kv_missing(const qn_kv *kv, int32_t end);

/** Go back to n positions. @return false: a window or state of then is lost; nothing has changed. 0 always succeeds. */
bool qn_kv_rewind(qn_kv *kv, int32_t n);
/** Hold the longest prefix of `tokens` that this timeline or the pool has, and nothing else. @return its length */
int32_t qn_kv_match(qn_kv *kv, const int32_t *tokens, int32_t n);
/** Keep the state of now, so that qn_kv_rewind can come back to this position; one at a time. Nothing to do where layers have no state.
 *  @return false: no memory */
bool qn_kv_hold(qn_kv *kv);

/** What a timeline at position n holds that a token after it may look at: for each group the blocks that are in sight, and the state of
 *  then as the one block of a group. @return false outside [0, number of groups) */
bool qn_kv_layout_seen(const qn_kv_layout *l, int32_t i_group, int32_t n, int32_t *n_blocks, size_t *block_bytes);
/** Is handed these blocks one after another: group after group, ascending. */
typedef qn_status (*qn_kv_piece_fn)(void *user, void *bytes, size_t n);
qn_status qn_kv_pieces(const qn_kv *kv, qn_kv_piece_fn fn, void *user);
/** Become a timeline of n tokens (1 .. n_ctx) whose blocks `fn` fills in the same order. Blocks that are full are published.
 *  @return what fn failed with; QN_ERR_CTX_FULL: the pool has no block left. The timeline is empty then */
qn_status qn_kv_restore(qn_kv *kv, const int32_t *tokens, int32_t n, qn_kv_piece_fn fn, void *user);

/** Become a copy of another timeline of the pool; blocks are shared until one of the two writes. */
void qn_kv_fork(qn_kv *kv, const qn_kv *from);

#endif

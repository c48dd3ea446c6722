/**
 * The KV cache: blocks of 16 positions of one group of layers.
 *
 * Layers with the same window form a group. A block holds, for every layer of its group and every KV head, the keys and then the values,
 * each as its format lays it out (simd/kernels.h). Block b of a timeline holds positions [16b, 16b + 16). A group with a sliding window is
 * a ring that is just long enough: block b lies in slot b mod ring length. A layer whose memory of the past is a state of fixed size has that
 * beside its blocks or instead of them.
 */
#ifndef QN_KV_H
#define QN_KV_H

#include "src/base/err.h"

enum { QN_KV_POSITIONS = 16 };

typedef struct qn_kv_layer {
    int32_t n_head_kv;
    size_t k_bytes, v_bytes; /* of a head's K and V at 16 positions: multiples of 64         */
    int32_t window;          /* positions a token sees, itself included; 0: all              */
    int64_t state_floats;    /* of a layer with a state of fixed size; 0: none               */
} qn_kv_layer;

typedef struct qn_kv_layout qn_kv_layout;
typedef struct qn_kv qn_kv;

/** @param n_ctx positions of a timeline  @param n_chunk positions that one step may add */
qn_status qn_kv_layout_open(qn_kv_layout **out, const qn_kv_layer *layers, int32_t n_layer, int32_t n_ctx, int32_t n_chunk, qn_err *err);
void qn_kv_layout_close(qn_kv_layout **l);
/** Bytes of the blocks of one timeline. */
uint64_t qn_kv_layout_bytes(const qn_kv_layout *l);

/** One timeline with room for n_ctx positions; the layout is borrowed. Memory is reserved here and touched as positions come. */
qn_status qn_kv_open(qn_kv **out, const qn_kv_layout *layout, qn_err *err);
void qn_kv_close(qn_kv **kv);

/** K and V of one head in the block that holds `position`. */
void *qn_kv_k(const qn_kv *kv, int32_t i_layer, int32_t i_head, int32_t position);
void *qn_kv_v(const qn_kv *kv, int32_t i_layer, int32_t i_head, int32_t position);

/** The state of a layer at the timeline's position: [state_floats], zeros at position 0. A step's stages move it on in place. */
float *qn_kv_state(const qn_kv *kv, int32_t i_layer);

/** A step is about to write positions up to `end` - 1; what it overwrites in rings and states is lost even if it is cancelled. */
void qn_kv_begin(qn_kv *kv, int32_t end);
/** The step is complete: positions up to `end` - 1 are valid. */
void qn_kv_commit(qn_kv *kv, int32_t end);
/** Can the timeline go back so that n positions remain and the next one be evaluated? False where a ring has overwritten its window,
 *  or a state has gone on. */
bool qn_kv_can_rewind(const qn_kv *kv, int32_t n);
/** Go back to n positions: 0, or a number that qn_kv_can_rewind allows. */
void qn_kv_rewind(qn_kv *kv, int32_t n);

#endif

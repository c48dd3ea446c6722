/* Where things lie in a block. */
#ifndef QN_KV_LAYOUT_H
#define QN_KV_LAYOUT_H

#include "src/kv/kv.h"

typedef struct kv_group {
    int32_t window;          /* 0: all                                                       */
    bool is_state;           /* blocks are copies of a timeline's state                      */
    int32_t n_slots;         /* blocks of a timeline                                         */
    int32_t first_slot;      /* in its table                                                 */
    size_t block_bytes;
} kv_group;

typedef struct kv_place {
    int32_t group;           /* of the keys; -1: the layer has none                          */
    size_t k_bytes;          /* K of one head, behind which V is                             */
    size_t offset;           /* of the layer in a block                                      */
    size_t head_bytes;       /* K and V of one head                                          */
    size_t state;            /* floats before the layer's in a timeline's state              */
} kv_place;

struct qn_kv_layout {
    int32_t n_layer, n_group, n_slots, n_ctx;
    kv_place *layer;         /* [n_layer]                                                    */
    kv_group *group;         /* [n_group], at most n_layer + 1; that of states comes last    */
    size_t state_floats;     /* of a timeline                                                */
    size_t n_bytes;
};

/** The first position that the token at position `n` sees. */
static inline int32_t qn_kv_first_seen(const kv_group *g, int32_t n)
{
    return g->window && n >= g->window ? n - g->window + 1 : 0;
}

#endif

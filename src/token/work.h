/* What one call of qn_vocab_tokenize works with: ids going out, and buffers that grow as the text asks and are freed at its end. */
#ifndef QN_TOKEN_WORK_H
#define QN_TOKEN_WORK_H

#include "src/base/mem.h"
#include "src/token/pre.h"

/** Ids going out: counted whole, stored up to cap. */
typedef struct qn_ids {
    int32_t *ids;
    size_t cap, n;
} qn_ids;

static inline void qn_ids_add(qn_ids *out, int32_t id)
{
    if (out->n < out->cap) out->ids[out->n] = id;
    out->n++;
}

/** A piece of text on its way to a token; a list through prev and next, QN_NONE at both ends. */
typedef struct qn_symbol {
    uint32_t prev, next;
    uint32_t begin, len; /* bytes; len 0: merged into the one before it */
    int32_t id;          /* BPE: the token so far, or -1                */
} qn_symbol;
#define QN_NONE UINT32_MAX

/** A pair of neighbours that may merge. The heap gives the smallest (order, left) first. */
typedef struct qn_merge {
    uint32_t left;
    uint32_t order;
    int32_t left_id, right_id; /* BPE: what they were; SPM: left_id is the length of the pair in bytes */
    int32_t id;                /* what they become */
} qn_merge;

typedef struct qn_work {
    uint32_t *cp;      /* [n_cp] */
    uint16_t *cls;     /* [n_cp] */
    size_t n_cp, cp_cap, cls_cap;
    qn_symbol *sym;    /* [n_sym] */
    size_t n_sym, sym_cap;
    qn_merge *heap;    /* [n_heap] */
    size_t n_heap, heap_cap;
    qn_buf text;       /* normalised or escaped text */
    bool failed;       /* memory ran short; sticky   */
} qn_work;

void qn_work_free(qn_work *w);
/** Append a code point with its class. */
bool qn_work_cp(qn_work *w, uint32_t cp);
/** Append all code points of a text. */
bool qn_work_decode(qn_work *w, qn_str text);
/** Append a symbol behind the last; `first` tells that it starts a list. */
bool qn_work_symbol(qn_work *w, uint32_t begin, uint32_t len, int32_t id, bool first);
bool qn_work_push(qn_work *w, qn_merge m);
/** @return false when the heap is empty */
bool qn_work_pop(qn_work *w, qn_merge *out);
/** Join a symbol with the next one. */
void qn_work_join(qn_work *w, uint32_t left);

#endif

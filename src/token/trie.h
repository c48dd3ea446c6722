/* A trie over bytes: longest match, and all prefixes that are keys. One hash table holds the edges, so memory follows the bytes of
 * the keys and a step is one look-up. */
#ifndef QN_TOKEN_TRIE_H
#define QN_TOKEN_TRIE_H

#include "src/base/err.h"

typedef struct qn_trie_edge {
    uint32_t from; /* node + 1; 0: free */
    uint32_t to;
    uint8_t byte;
} qn_trie_edge;

typedef struct qn_trie {
    qn_trie_edge *edges; /* [cap], a power of two */
    size_t cap, n_edges;
    int32_t *value;      /* [n_nodes] of each node, -1: no key ends here. Node 0 is the root */
    size_t n_nodes, node_cap;
} qn_trie;

void qn_trie_free(qn_trie *t);
/** Add a key; the first value of a key stays. @return false when memory is short */
bool qn_trie_add(qn_trie *t, qn_str key, int32_t value);
/** The node behind `byte` from `node`, or 0 when there is none (the root is nobody's child). An empty trie has no children. */
uint32_t qn_trie_step(const qn_trie *t, uint32_t node, unsigned char byte);

#endif

#include "src/token/trie.h"

#include "src/base/mem.h"

#include <stdlib.h>

void qn_trie_free(qn_trie *t)
{
    free(t->edges);
    free(t->value);
    *t = (qn_trie){ 0 };
}

static size_t slot_of(uint32_t node, unsigned char byte, size_t cap)
{
    uint64_t h = ((uint64_t)node << 8 | byte) * 0x9e3779b97f4a7c15u;
    return (size_t)(h ^ h >> 32) & (cap - 1);
}

static qn_trie_edge *edge_at(const qn_trie *t, uint32_t node, unsigned char byte)
{
    size_t i = slot_of(node, byte, t->cap);
    while (t->edges[i].from && (t->edges[i].from != node + 1 || t->edges[i].byte != byte)) i = (i + 1) & (t->cap - 1);
    return &t->edges[i];
}

uint32_t qn_trie_step(const qn_trie *t, uint32_t node, unsigned char byte)
{
    return t->cap ? edge_at(t, node, byte)->to : 0;
}

static bool grow(qn_trie *t)
{
    if (t->cap && t->n_edges < t->cap / 2) return true;
    qn_trie old = *t;
    const size_t cap = old.cap ? old.cap * 2 : 256;
    qn_trie_edge *edges = qn_new(cap, sizeof *edges);
    if (!edges) return false;
    t->edges = edges;
    t->cap = cap;
    for (size_t i = 0; i < old.cap; i++)
        if (old.edges[i].from) *edge_at(t, old.edges[i].from - 1, old.edges[i].byte) = old.edges[i];
    free(old.edges);
    return true;
}

static bool node_new(qn_trie *t, uint32_t *out)
{
    if (t->n_nodes >= UINT32_MAX - 1) return false;
    if (!qn_grow((void **)&t->value, &t->node_cap, t->n_nodes + 1, sizeof *t->value)) return false;
    t->value[t->n_nodes] = -1;
    *out = (uint32_t)t->n_nodes++;
    return true;
}

bool qn_trie_add(qn_trie *t, qn_str key, int32_t value)
{
    uint32_t node = 0;
    if (t->n_nodes == 0 && !node_new(t, &node)) return false;
    for (size_t i = 0; i < key.len; i++) {
        const unsigned char byte = (unsigned char)key.ptr[i];
        uint32_t next = qn_trie_step(t, node, byte);
        if (!next) {
            if (!grow(t) || !node_new(t, &next)) return false;
            *edge_at(t, node, byte) = (qn_trie_edge){ node + 1, next, byte };
            t->n_edges++;
        }
        node = next;
    }
    if (t->value[node] < 0) t->value[node] = value;
    return true;
}

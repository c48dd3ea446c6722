#include "src/kv/kv_layout.h"

#include "src/base/mem.h"

#include <stdlib.h>

/* Copies of its state that a timeline has a share for: ends of the chunks of a prompt, and every so often of an answer. */
enum { N_STATES = 4 };

static int32_t group_of(qn_kv_layout *l, int32_t window, int32_t n_chunk)
{
    for (int32_t g = 0; g < l->n_group; g++)
        if (l->group[g].window == window) return g;
    /* A step writes up to n_chunk positions before its first token looks back over the window; one block more for the partial ones. */
    const int64_t n_all = (l->n_ctx + QN_KV_POSITIONS - 1) / QN_KV_POSITIONS;
    const int64_t n_ring = ((int64_t)window + n_chunk + QN_KV_POSITIONS - 1) / QN_KV_POSITIONS + 1;
    l->group[l->n_group] = (kv_group){ .window = window, .n_slots = (int32_t)(window && n_ring < n_all ? n_ring : n_all) };
    return l->n_group++;
}

static void place_layer(qn_kv_layout *l, const qn_kv_layer *in, kv_place *p, int32_t n_chunk)
{
    p->state = l->state_floats;
    l->state_floats += ((size_t)in->state_floats + 15) & ~(size_t)15;
    p->group = -1;
    if (in->n_head_kv == 0) return;
    p->group = group_of(l, in->window, n_chunk);
    p->k_bytes = in->k_bytes;
    p->head_bytes = in->k_bytes + in->v_bytes;
    p->offset = l->group[p->group].block_bytes;
    l->group[p->group].block_bytes += p->head_bytes * (size_t)in->n_head_kv;
}

static bool lay_out(qn_kv_layout *l, const qn_kv_layer *layers, int32_t n_chunk)
{
    for (int32_t i = 0; i < l->n_layer; i++) place_layer(l, &layers[i], &l->layer[i], n_chunk);
    if (l->state_floats)
        l->group[l->n_group++] = (kv_group){ .is_state = true, .n_slots = N_STATES, .block_bytes = l->state_floats * sizeof(float) };
    l->n_bytes = l->state_floats * sizeof(float);
    for (int32_t g = 0; g < l->n_group; g++) {
        kv_group *gr = &l->group[g];
        size_t bytes;
        gr->first_slot = l->n_slots;
        l->n_slots += gr->n_slots;
        if (!qn_size_mul(gr->block_bytes, (size_t)gr->n_slots, &bytes) || !qn_size_add(l->n_bytes, bytes, &l->n_bytes)) return false;
    }
    return true;
}

qn_status qn_kv_layout_open(qn_kv_layout **out, const qn_kv_layer *layers, int32_t n_layer, int32_t n_ctx, int32_t n_chunk, qn_err *err)
{
    *out = NULL;
    qn_kv_layout *l = qn_new(1, sizeof *l);
    if (l) {
        l->n_layer = n_layer;
        l->n_ctx = n_ctx;
        l->layer = qn_new((size_t)n_layer, sizeof *l->layer);
        l->group = qn_new((size_t)n_layer + 1, sizeof *l->group);
    }
    if (!l || !l->layer || !l->group || !lay_out(l, layers, n_chunk)) {
        if (l) qn_kv_layout_close(&l);
        return qn_fail(err, QN_ERR_NOMEM, "no memory for the layout of a KV cache of %d positions", n_ctx);
    }
    *out = l;
    return QN_OK;
}

void qn_kv_layout_close(qn_kv_layout **l)
{
    if (!*l) return;
    free((*l)->layer);
    free((*l)->group);
    free(*l);
    *l = NULL;
}

uint64_t qn_kv_layout_bytes(const qn_kv_layout *l)
{
    return l->n_bytes;
}

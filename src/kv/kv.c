#include "src/kv/kv.h"

#include "src/base/mem.h"

#include <stdlib.h>
#include <string.h>

typedef struct kv_group {
    int32_t window;          /* 0: all                                                       */
    int32_t n_slots;         /* blocks of a timeline                                         */
    size_t block_bytes;
    size_t offset;           /* of slot 0 in the timeline's pages                            */
} kv_group;

typedef struct kv_place {
    int32_t group;
    size_t offset;           /* of the layer in a block                                      */
    size_t k_bytes;          /* K of one head, behind which V is                             */
    size_t head_bytes;       /* K and V of one head                                          */
    size_t state;            /* floats before its own in a timeline's state                  */
} kv_place;

struct qn_kv_layout {
    int32_t n_layer, n_group;
    kv_place *layer;         /* [n_layer]                                                    */
    kv_group *group;         /* [n_group], at most n_layer                                   */
    size_t n_bytes;          /* of the blocks                                                */
    size_t state_floats;     /* of all layers                                                */
};

struct qn_kv {
    const qn_kv_layout *layout;
    void *pages;
    void *state;             /* float32, behind the blocks                                   */
    int32_t n_positions;     /* valid                                                        */
    int32_t n_written;       /* highest position written since the timeline was empty, + 1   */
};

static int32_t group_of(qn_kv_layout *l, int32_t window, int32_t n_ctx, int32_t n_chunk)
{
    for (int32_t g = 0; g < l->n_group; g++)
        if (l->group[g].window == window) return g;
    /* A step writes up to n_chunk positions before its first token looks back over the window; one block more for the partial ones. */
    const int64_t n_all = (n_ctx + QN_KV_POSITIONS - 1) / QN_KV_POSITIONS;
    const int64_t n_ring = ((int64_t)window + n_chunk + QN_KV_POSITIONS - 1) / QN_KV_POSITIONS + 1;
    l->group[l->n_group] = (kv_group){ .window = window, .n_slots = (int32_t)(window && n_ring < n_all ? n_ring : n_all) };
    return l->n_group++;
}

static bool lay_out(qn_kv_layout *l, const qn_kv_layer *layers, int32_t n_ctx, int32_t n_chunk)
{
    for (int32_t i = 0; i < l->n_layer; i++) {
        const qn_kv_layer *in = &layers[i];
        kv_place *p = &l->layer[i];
        p->state = l->state_floats;
        if (!qn_size_add(l->state_floats, (size_t)in->state_floats, &l->state_floats)) return false;
        p->group = group_of(l, in->window, n_ctx, n_chunk);
        p->k_bytes = in->k_bytes;
        p->head_bytes = in->k_bytes + in->v_bytes;
        p->offset = l->group[p->group].block_bytes;
        l->group[p->group].block_bytes += p->head_bytes * (size_t)in->n_head_kv;
    }
    for (int32_t g = 0; g < l->n_group; g++) {
        kv_group *gr = &l->group[g];
        size_t bytes;
        gr->offset = l->n_bytes;
        if (!qn_size_mul(gr->block_bytes, (size_t)gr->n_slots, &bytes) || !qn_size_add(l->n_bytes, bytes, &l->n_bytes)) return false;
    }
    size_t bytes;
    return qn_size_mul(l->state_floats, sizeof(float), &bytes) && qn_size_add(bytes, l->n_bytes, &bytes);
}

qn_status qn_kv_layout_open(qn_kv_layout **out, const qn_kv_layer *layers, int32_t n_layer, int32_t n_ctx, int32_t n_chunk, qn_err *err)
{
    *out = NULL;
    qn_kv_layout *l = qn_new(1, sizeof *l);
    if (l) {
        l->n_layer = n_layer;
        l->layer = qn_new((size_t)n_layer, sizeof *l->layer);
        l->group = qn_new((size_t)n_layer, sizeof *l->group);
    }
    if (!l || !l->layer || !l->group || !lay_out(l, layers, n_ctx, n_chunk)) {
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
    return l->n_bytes + l->state_floats * sizeof(float);
}

qn_status qn_kv_open(qn_kv **out, const qn_kv_layout *layout, qn_err *err)
{
    *out = NULL;
    qn_kv *kv = qn_new(1, sizeof *kv);
    if (!kv) return qn_fail(err, QN_ERR_NOMEM, "no memory for a timeline");
    kv->layout = layout;
    const qn_status s = qn_pages_new(&kv->pages, qn_kv_layout_bytes(layout), "the KV cache", err);
    kv->state = s == QN_OK ? (uint8_t *)kv->pages + layout->n_bytes : NULL;
    if (s != QN_OK) qn_kv_close(&kv);
    *out = kv;
    return s;
}

void qn_kv_close(qn_kv **kv)
{
    if (!*kv) return;
    qn_pages_free(&(*kv)->pages, qn_kv_layout_bytes((*kv)->layout));
    free(*kv);
    *kv = NULL;
}

static uint8_t *head_at(const qn_kv *kv, const kv_place *p, int32_t i_head, int32_t position)
{
    const kv_group *g = &kv->layout->group[p->group];
    const size_t slot = (size_t)((position / QN_KV_POSITIONS) % g->n_slots);
    return (uint8_t *)kv->pages + g->offset + slot * g->block_bytes + p->offset + (size_t)i_head * p->head_bytes;
}

void *qn_kv_k(const qn_kv *kv, int32_t i_layer, int32_t i_head, int32_t position)
{
    return head_at(kv, &kv->layout->layer[i_layer], i_head, position);
}

void *qn_kv_v(const qn_kv *kv, int32_t i_layer, int32_t i_head, int32_t position)
{
    const kv_place *p = &kv->layout->layer[i_layer];
    return head_at(kv, p, i_head, position) + p->k_bytes;
}

float *qn_kv_state(const qn_kv *kv, int32_t i_layer)
{
    return (float *)kv->state + kv->layout->layer[i_layer].state;
}

void qn_kv_begin(qn_kv *kv, int32_t end)
{
    if (end > kv->n_written) kv->n_written = end;
}

void qn_kv_commit(qn_kv *kv, int32_t end)
{
    kv->n_positions = end;
}

bool qn_kv_can_rewind(const qn_kv *kv, int32_t n)
{
    if (n > kv->n_positions) return false;
    if (kv->layout->state_floats && n != 0 && n != kv->n_written) return false; /* moved on, by a step that was stopped too */
    for (int32_t g = 0; g < kv->layout->n_group; g++) {
        const kv_group *gr = &kv->layout->group[g];
        if (!gr->window || kv->n_written == 0) continue;
        const int32_t oldest = (kv->n_written - 1) / QN_KV_POSITIONS - gr->n_slots + 1; /* block that is still there */
        const int32_t first_seen = n - gr->window + 1 > 0 ? n - gr->window + 1 : 0;
        if (first_seen / QN_KV_POSITIONS < oldest) return false;
    }
    return true;
}

void qn_kv_rewind(qn_kv *kv, int32_t n)
{
    kv->n_positions = n;
    if (n != 0) return;
    kv->n_written = 0;
    memset(kv->state, 0, kv->layout->state_floats * sizeof(float));
}

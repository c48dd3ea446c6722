#include "src/kv/kv.h"

#include "src/base/entropy.h"
#include "src/base/mem.h"
#include "src/kv/blocks.h"
#include "src/kv/kv_layout.h"

#include <stdlib.h>
#include <string.h>

/* Positions between the copies of a state that an answer leaves behind. */
enum { STATE_EVERY = 256 };

struct qn_kv_pool {
    const qn_kv_layout *layout;
    kv_blocks *group;        /* [n_group]                                                    */
    qn_hash seed;            /* of the keys: nobody can make tokens whose keys collide       */
    uint64_t n_copied;
};

struct qn_kv {
    qn_kv_pool *pool;
    int32_t n;               /* positions                                                    */
    int32_t *token;          /* [n_ctx]                                                      */
    qn_hash *key;            /* [n_ctx / 16] of full blocks                                  */
    qn_hash *want;           /* the same of tokens that are looked for                       */
    int32_t *slot;           /* [n_slots] a block of the pool, or -1                         */
    int32_t *holds;          /* [n_slots] which block of the timeline it is                  */
    float *state;            /* of now                                                       */
    bool is_lost;            /* the state is not that of n positions                         */
    float *held;             /* of qn_kv_hold, or NULL                                       */
    int32_t n_held;          /* its position; -1: none                                       */
};

/* ---- pool ---- */

qn_status qn_kv_pool_open(qn_kv_pool **out, const qn_kv_layout *layout, double n_timelines, qn_err *err)
{
    *out = NULL;
    qn_kv_pool *p = qn_new(1, sizeof *p);
    if (p) p->group = qn_new((size_t)layout->n_group, sizeof *p->group);
    if (!p || !p->group) {
        free(p);
        return qn_fail(err, QN_ERR_NOMEM, "no memory for the KV cache");
    }
    p->layout = layout;
    qn_status s = QN_OK;
    for (int32_t g = 0; g < layout->n_group && s == QN_OK; g++) {
        const double n = n_timelines * layout->group[g].n_slots;
        if (n > (double)(INT32_MAX / 2)) s = qn_fail(err, QN_ERR_ARG, "%.0f blocks of keys and values are too many", n);
        else s = qn_blocks_open(&p->group[g], layout->group[g].block_bytes, (int32_t)n, err);
    }
    p->seed = (qn_hash){ qn_entropy(), qn_entropy() };
    if (s != QN_OK) qn_kv_pool_close(&p);
    *out = p;
    return s;
}

void qn_kv_pool_close(qn_kv_pool **pool)
{
    qn_kv_pool *p = *pool;
    if (!p) return;
    for (int32_t g = 0; g < p->layout->n_group; g++) qn_blocks_close(&p->group[g]);
    free(p->group);
    free(p);
    *pool = NULL;
}

void qn_kv_pool_get_info(const qn_kv_pool *p, qn_kv_pool_info *out)
{
    *out = (qn_kv_pool_info){ .n_copied = p->n_copied, .state_bytes = p->layout->state_floats * sizeof(float) };
    double least = 2;
    for (int32_t g = 0; g < p->layout->n_group; g++) {
        const kv_blocks *b = &p->group[g];
        const double left = (double)(b->n_free + b->n_idle) / b->n;
        out->n_evicted += b->n_evicted;
        out->bytes += (uint64_t)b->n * b->block_bytes;
        if (left >= least) continue;
        least = left;
        out->n_blocks = b->n;
        out->n_free = b->n_free;
        out->n_idle = b->n_idle;
    }
}

/* ---- timeline ---- */

qn_status qn_kv_open(qn_kv **out, qn_kv_pool *pool, qn_err *err)
{
    const qn_kv_layout *l = pool->layout;
    const size_t n_blocks = (size_t)l->n_ctx / QN_KV_POSITIONS + 1;
    *out = NULL;
    qn_kv *kv = qn_new(1, sizeof *kv);
    if (!kv) return qn_fail(err, QN_ERR_NOMEM, "no memory for a timeline");
    kv->pool = pool;
    kv->n_held = -1;
    kv->token = qn_new((size_t)l->n_ctx, sizeof *kv->token);
    kv->key = qn_new(n_blocks, sizeof *kv->key);
    kv->want = qn_new(n_blocks, sizeof *kv->want);
    kv->slot = qn_new((size_t)l->n_slots, sizeof *kv->slot);
    kv->holds = qn_new((size_t)l->n_slots, sizeof *kv->holds);
    if (kv->slot) memset(kv->slot, -1, (size_t)l->n_slots * sizeof *kv->slot);
    void *state = NULL;
    qn_status s = QN_OK;
    if (!kv->token || !kv->key || !kv->want || !kv->slot || !kv->holds) s = qn_fail(err, QN_ERR_NOMEM, "no memory for a timeline");
    else if (l->state_floats) s = qn_pages_new(&state, l->state_floats * sizeof(float), "the state of a timeline", err);
    kv->state = state;
    if (s != QN_OK) qn_kv_close(&kv);
    *out = kv;
    return s;
}

static void drop_slot(qn_kv *kv, int32_t g, int32_t at)
{
    if (kv->slot[at] < 0) return;
    qn_blocks_drop(&kv->pool->group[g], kv->slot[at]);
    kv->slot[at] = -1;
}

/* Drop blocks from block b on, the last one first: who comes after takes the ends of texts before their beginnings. */
static void drop_from(qn_kv *kv, int32_t first)
{
    const qn_kv_layout *l = kv->pool->layout;
    for (int32_t g = 0; g < l->n_group; g++) {
        const kv_group *gr = &l->group[g];
        if (gr->is_state) continue;
        for (int32_t b = (l->n_ctx - 1) / QN_KV_POSITIONS, left = gr->n_slots; left > 0 && b >= first; b--, left--) {
            const int32_t at = gr->first_slot + b % gr->n_slots;
            if (kv->holds[at] >= first) drop_slot(kv, g, at);
        }
    }
}

void qn_kv_close(qn_kv **kv_)
{
    qn_kv *kv = *kv_;
    if (!kv) return;
    const size_t state_bytes = kv->pool->layout->state_floats * sizeof(float);
    if (kv->slot && kv->holds) drop_from(kv, 0);
    void *state = kv->state, *held = kv->held;
    qn_pages_free(&state, state_bytes);
    qn_pages_free(&held, state_bytes);
    free(kv->token);
    free(kv->key);
    free(kv->want);
    free(kv->slot);
    free(kv->holds);
    free(kv);
    *kv_ = NULL;
}

int32_t qn_kv_position(const qn_kv *kv)
{
    return kv->n;
}

const int32_t *qn_kv_tokens(const qn_kv *kv)
{
    return kv->token;
}

static uint8_t *head_at(const qn_kv *kv, const kv_place *p, int32_t i_head, int32_t position)
{
    const kv_group *g = &kv->pool->layout->group[p->group];
    const int32_t block = kv->slot[g->first_slot + position / QN_KV_POSITIONS % g->n_slots];
    return qn_blocks_at(&kv->pool->group[p->group], block) + p->offset + (size_t)i_head * p->head_bytes;
}

void *qn_kv_k(const qn_kv *kv, int32_t i_layer, int32_t i_head, int32_t position)
{
    return head_at(kv, &kv->pool->layout->layer[i_layer], i_head, position);
}

void *qn_kv_v(const qn_kv *kv, int32_t i_layer, int32_t i_head, int32_t position)
{
    const kv_place *p = &kv->pool->layout->layer[i_layer];
    return head_at(kv, p, i_head, position) + p->k_bytes;
}

float *qn_kv_state(const qn_kv *kv, int32_t i_layer)
{
    return kv->state + kv->pool->layout->layer[i_layer].state;
}

bool qn_kv_has_state(const qn_kv *kv)
{
    return kv->pool->layout->state_floats > 0;
}

/* ---- a step ---- */

/* A block of one's own in place of one that others may see; its first positions are copied. Where no other block can be had but nobody else
 * holds this one, it is taken out of the index. */
static bool own_block(qn_kv *kv, kv_blocks *b, int32_t at)
{
    const int32_t old = kv->slot[at], own = qn_blocks_take(b);
    if (own < 0 && b->block[old].n_refs > 1) return false;
    if (own < 0) {
        qn_blocks_unpublish(b, old);
        return true;
    }
    memcpy(qn_blocks_at(b, own), qn_blocks_at(b, old), b->block_bytes);
    qn_blocks_drop(b, old);
    kv->slot[at] = own;
    kv->pool->n_copied++;
    return true;
}

static bool reserve_block(qn_kv *kv, int32_t g, int32_t block)
{
    const kv_group *gr = &kv->pool->layout->group[g];
    kv_blocks *b = &kv->pool->group[g];
    const int32_t at = gr->first_slot + block % gr->n_slots;
    if (kv->slot[at] >= 0 && kv->holds[at] == block) return qn_blocks_is_own(b, kv->slot[at]) || own_block(kv, b, at);
    drop_slot(kv, g, at);
    kv->holds[at] = block;
    kv->slot[at] = qn_blocks_take(b);
    return kv->slot[at] >= 0;
}

bool qn_kv_reserve(qn_kv *kv, int32_t end)
{
    const qn_kv_layout *l = kv->pool->layout;
    for (int32_t block = kv->n / QN_KV_POSITIONS; block * QN_KV_POSITIONS < end; block++)
        for (int32_t g = 0; g < l->n_group; g++)
            if (!l->group[g].is_state && !reserve_block(kv, g, block)) return false;
    return true;
}

int32_t qn_kv_missing(const qn_kv *kv, int32_t end)
{
    const qn_kv_layout *l = kv->pool->layout;
    int32_t most = -INT32_MAX / 2;
    for (int32_t g = 0; g < l->n_group; g++) {
        const kv_group *gr = &l->group[g];
        const kv_blocks *b = &kv->pool->group[g];
        if (gr->is_state) continue;
        int32_t need = 0;
        for (int32_t block = kv->n / QN_KV_POSITIONS; block * QN_KV_POSITIONS < end; block++) {
            const int32_t at = gr->first_slot + block % gr->n_slots;
            need += kv->slot[at] < 0 || b->block[kv->slot[at]].n_refs > 1; /* what is held here alone can give way */
        }
        if (need - b->n_free - b->n_idle > most) most = need - b->n_free - b->n_idle;
    }
    return most;
}

/* The key of a block: of its tokens and the key before it. */
static qn_hash next_key(const qn_kv_pool *p, const qn_hash *before, const int32_t *tokens)
{
    uint8_t bytes[16 + 4 * QN_KV_POSITIONS] = { 0 };
    if (before) memcpy(bytes, before, 16);
    memcpy(bytes + 16, tokens, 4 * QN_KV_POSITIONS);
    return qn_hash_of(p->seed, bytes, sizeof bytes);
}

static void make_keys(const qn_kv_pool *p, qn_hash *key, int32_t begin, int32_t end, const int32_t *tokens)
{
    for (int32_t b = begin; b < end; b++) key[b] = next_key(p, b ? &key[b - 1] : NULL, tokens + (size_t)b * QN_KV_POSITIONS);
}

/* Copies of the state are kept where a prompt's chunk ends, and every so often. */
static void publish_state(qn_kv *kv, int32_t g, int32_t n_new)
{
    kv_blocks *b = &kv->pool->group[g];
    if (kv->n % QN_KV_POSITIONS || (n_new == 1 && kv->n % STATE_EVERY)) return;
    const qn_hash key = kv->key[kv->n / QN_KV_POSITIONS - 1];
    const int32_t i = qn_blocks_find(b, key) < 0 ? qn_blocks_take(b) : -1;
    if (i < 0) return;
    memcpy(qn_blocks_at(b, i), kv->state, b->block_bytes);
    qn_blocks_publish(b, i, key);
    qn_blocks_drop(b, i);
}

void qn_kv_commit(qn_kv *kv, const int32_t *tokens, int32_t n)
{
    const qn_kv_layout *l = kv->pool->layout;
    const int32_t begin = kv->n / QN_KV_POSITIONS;
    memcpy(kv->token + kv->n, tokens, (size_t)n * sizeof *tokens);
    kv->n += n;
    const int32_t end = kv->n / QN_KV_POSITIONS;
    make_keys(kv->pool, kv->key, begin, end, kv->token);
    for (int32_t g = 0; g < l->n_group; g++) {
        const kv_group *gr = &l->group[g];
        if (gr->is_state) {
            publish_state(kv, g, n);
            continue;
        }
        for (int32_t b = begin; b < end; b++) {
            const int32_t at = gr->first_slot + b % gr->n_slots;
            if (kv->holds[at] == b) qn_blocks_publish(&kv->pool->group[g], kv->slot[at], kv->key[b]);
        }
    }
}

/* ---- going back, and finding what is there ---- */

/* Where the timeline's block b lies: in its slot, or published. -1: it is lost. */
static int32_t block_at(const qn_kv *kv, int32_t g, int32_t b)
{
    const kv_group *gr = &kv->pool->layout->group[g];
    const int32_t at = gr->first_slot + b % gr->n_slots;
    if (kv->slot[at] >= 0 && kv->holds[at] == b) return kv->slot[at];
    return (b + 1) * QN_KV_POSITIONS <= kv->n ? qn_blocks_find(&kv->pool->group[g], kv->key[b]) : -1;
}

static const kv_blocks *states_of(const qn_kv_pool *p)
{
    return p->layout->state_floats ? &p->group[p->layout->n_group - 1] : NULL;
}

/* The state at n positions of the tokens with these keys; NULL: it is lost. */
static const float *state_at(const qn_kv *kv, const qn_hash *key, int32_t n)
{
    const kv_blocks *b = states_of(kv->pool);
    const int32_t i = n % QN_KV_POSITIONS == 0 ? qn_blocks_find(b, key[n / QN_KV_POSITIONS - 1]) : -1;
    return i < 0 ? NULL : (const float *)(const void *)qn_blocks_at(b, i);
}

static bool can_rewind(const qn_kv *kv, int32_t n)
{
    const qn_kv_layout *l = kv->pool->layout;
    if (n == 0) return true;
    const bool is_here = n == kv->n && !kv->is_lost;
    if (l->state_floats && !is_here && n != kv->n_held && !state_at(kv, kv->key, n)) return false;
    for (int32_t g = 0; g < l->n_group; g++) {
        const kv_group *gr = &l->group[g];
        if (gr->is_state) continue;
        for (int32_t b = qn_kv_first_seen(gr, n) / QN_KV_POSITIONS; b * QN_KV_POSITIONS < n; b++)
            if (block_at(kv, g, b) < 0) return false;
    }
    return true;
}

static void set_state(qn_kv *kv, const float *state)
{
    const size_t n_bytes = kv->pool->layout->state_floats * sizeof(float);
    kv->is_lost = false;
    if (!n_bytes) return;
    if (state) memcpy(kv->state, state, n_bytes);
    else memset(kv->state, 0, n_bytes);
}

/* Put block i of the pool, held already, where the timeline's block b belongs. */
static void put_block(qn_kv *kv, int32_t g, int32_t b, int32_t i)
{
    const kv_group *gr = &kv->pool->layout->group[g];
    const int32_t at = gr->first_slot + b % gr->n_slots;
    drop_slot(kv, g, at);
    kv->slot[at] = i;
    kv->holds[at] = b;
}

bool qn_kv_rewind(qn_kv *kv, int32_t n)
{
    const qn_kv_layout *l = kv->pool->layout;
    if (n > 0 && n == kv->n && !kv->is_lost) return true;
    if (n > kv->n || !can_rewind(kv, n)) return false;
    if (l->state_floats) set_state(kv, n == 0 ? NULL : n == kv->n_held ? kv->held : state_at(kv, kv->key, n));
    for (int32_t g = 0; g < l->n_group; g++) {
        const kv_group *gr = &l->group[g];
        if (gr->is_state) continue;
        for (int32_t b = qn_kv_first_seen(gr, n) / QN_KV_POSITIONS; b * QN_KV_POSITIONS < n; b++) {
            const int32_t i = block_at(kv, g, b);
            qn_blocks_hold(&kv->pool->group[g], i);
            put_block(kv, g, b, i);
        }
    }
    kv->n = n;
    if (kv->n_held > n) kv->n_held = -1;
    drop_from(kv, (n + QN_KV_POSITIONS - 1) / QN_KV_POSITIONS);
    return true;
}

void qn_kv_abandon(qn_kv *kv)
{
    int32_t n = kv->n;
    kv->is_lost = kv->pool->layout->state_floats > 0;
    while (!qn_kv_rewind(kv, n)) n = (n - 1) / QN_KV_POSITIONS * QN_KV_POSITIONS;
}

/* Positions, a multiple of 16, of the longest prefix of the wanted keys that the pool has; at most n blocks. */
static int32_t find_prefix(const qn_kv *kv, int32_t n)
{
    const qn_kv_layout *l = kv->pool->layout;
    for (int32_t g = 0; g < l->n_group; g++) {
        if (l->group[g].window || l->group[g].is_state) continue;
        int32_t b = 0;
        while (b < n && qn_blocks_find(&kv->pool->group[g], kv->want[b]) >= 0) b++;
        n = b;
    }
    for (int32_t end = n; end > 0;) { /* windows and states must be there at the end alone */
        int32_t lost = -1;
        for (int32_t g = 0; g < l->n_group && lost < 0; g++) {
            const kv_group *gr = &l->group[g];
            const kv_blocks *blocks = &kv->pool->group[g];
            if (gr->is_state && qn_blocks_find(blocks, kv->want[end - 1]) < 0) lost = end - 1;
            if (!gr->window) continue;
            for (int32_t b = end - 1; b >= qn_kv_first_seen(gr, end * QN_KV_POSITIONS) / QN_KV_POSITIONS && lost < 0; b--)
                if (qn_blocks_find(blocks, kv->want[b]) < 0) lost = b;
        }
        if (lost < 0) return end * QN_KV_POSITIONS;
        end = lost;
    }
    return 0;
}

/* Become the first n positions, a multiple of 16, of the wanted tokens. What is wanted is held before anything is let go. */
static void adopt(qn_kv *kv, const int32_t *tokens, int32_t n)
{
    const qn_kv_layout *l = kv->pool->layout;
    set_state(kv, l->state_floats ? state_at(kv, kv->want, n) : NULL);
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t g = 0; g < l->n_group; g++) {
            const kv_group *gr = &l->group[g];
            if (gr->is_state) continue;
            for (int32_t b = qn_kv_first_seen(gr, n) / QN_KV_POSITIONS; b * QN_KV_POSITIONS < n; b++) {
                const int32_t i = qn_blocks_find(&kv->pool->group[g], kv->want[b]);
                if (pass == 0) qn_blocks_hold(&kv->pool->group[g], i);
                else put_block(kv, g, b, i);
            }
        }
        if (pass == 0) drop_from(kv, 0);
    }
    memcpy(kv->token, tokens, (size_t)n * sizeof *tokens);
    memcpy(kv->key, kv->want, (size_t)(n / QN_KV_POSITIONS) * sizeof *kv->key);
    kv->n = n;
    kv->n_held = -1;
}

int32_t qn_kv_match(qn_kv *kv, const int32_t *tokens, int32_t n)
{
    const int32_t n_ctx = kv->pool->layout->n_ctx;
    int32_t same = 0;
    if (n > n_ctx) n = n_ctx;
    while (same < n && same < kv->n && tokens[same] == kv->token[same]) same++;
    const int32_t n_blocks = n / QN_KV_POSITIONS, n_known = same / QN_KV_POSITIONS;
    memcpy(kv->want, kv->key, (size_t)n_known * sizeof *kv->want);
    make_keys(kv->pool, kv->want, n_known, n_blocks, tokens);
    const int32_t found = find_prefix(kv, n_blocks);
    if (found > same || !qn_kv_rewind(kv, same)) {
        if (found) adopt(kv, tokens, found);
        else (void)qn_kv_rewind(kv, 0);
    }
    return kv->n;
}

bool qn_kv_hold(qn_kv *kv)
{
    const size_t n_bytes = kv->pool->layout->state_floats * sizeof(float);
    if (!n_bytes) return true;
    void *held = kv->held;
    if (!held && qn_pages_new(&held, n_bytes, "a copy of a timeline's state", NULL) != QN_OK) return false;
    kv->held = held;
    kv->n_held = kv->n;
    memcpy(kv->held, kv->state, n_bytes);
    return true;
}

void qn_kv_fork(qn_kv *kv, const qn_kv *from)
{
    const qn_kv_layout *l = kv->pool->layout;
    if (kv == from) return;
    drop_from(kv, 0);
    for (int32_t g = 0; g < l->n_group; g++)
        for (int32_t at = l->group[g].first_slot; at < l->group[g].first_slot + l->group[g].n_slots; at++) {
            if (from->slot[at] >= 0) qn_blocks_hold(&kv->pool->group[g], from->slot[at]);
            kv->slot[at] = from->slot[at];
            kv->holds[at] = from->holds[at];
        }
    memcpy(kv->token, from->token, (size_t)from->n * sizeof *kv->token);
    memcpy(kv->key, from->key, (size_t)(from->n / QN_KV_POSITIONS) * sizeof *kv->key);
    kv->n = from->n;
    kv->n_held = -1;
    if (l->state_floats) set_state(kv, from->state);
}

/* ---- all that is in sight, for a file ---- */

bool qn_kv_layout_seen(const qn_kv_layout *l, int32_t i_group, int32_t n, int32_t *n_blocks, size_t *block_bytes)
{
    if (i_group < 0 || i_group >= l->n_group) return false;
    const kv_group *g = &l->group[i_group];
    const int32_t begin = qn_kv_first_seen(g, n) / QN_KV_POSITIONS, end = (n + QN_KV_POSITIONS - 1) / QN_KV_POSITIONS;
    *n_blocks = g->is_state ? 1 : end - begin;
    *block_bytes = g->block_bytes;
    return true;
}

qn_status qn_kv_pieces(const qn_kv *kv, qn_kv_piece_fn fn, void *user)
{
    const qn_kv_layout *l = kv->pool->layout;
    for (int32_t g = 0; g < l->n_group; g++) {
        const kv_group *gr = &l->group[g];
        if (gr->is_state) QN_TRY(fn(user, kv->state, gr->block_bytes));
        if (gr->is_state) continue;
        for (int32_t b = qn_kv_first_seen(gr, kv->n) / QN_KV_POSITIONS; b * QN_KV_POSITIONS < kv->n; b++)
            QN_TRY(fn(user, qn_blocks_at(&kv->pool->group[g], block_at(kv, g, b)), gr->block_bytes));
    }
    return QN_OK;
}

/* Blocks of one's own for all that is in sight at n positions. */
static bool take_seen(qn_kv *kv, int32_t n)
{
    const qn_kv_layout *l = kv->pool->layout;
    for (int32_t g = 0; g < l->n_group; g++) {
        if (l->group[g].is_state) continue;
        for (int32_t b = qn_kv_first_seen(&l->group[g], n) / QN_KV_POSITIONS; b * QN_KV_POSITIONS < n; b++)
            if (!reserve_block(kv, g, b)) return false;
    }
    return true;
}

static void publish_seen(qn_kv *kv)
{
    const qn_kv_layout *l = kv->pool->layout;
    const int32_t n_full = kv->n / QN_KV_POSITIONS;
    make_keys(kv->pool, kv->key, 0, n_full, kv->token);
    for (int32_t g = 0; g < l->n_group; g++) {
        const kv_group *gr = &l->group[g];
        if (gr->is_state) publish_state(kv, g, kv->n);
        if (gr->is_state) continue;
        for (int32_t b = qn_kv_first_seen(gr, kv->n) / QN_KV_POSITIONS; b < n_full; b++)
            qn_blocks_publish(&kv->pool->group[g], kv->slot[gr->first_slot + b % gr->n_slots], kv->key[b]);
    }
}

qn_status qn_kv_restore(qn_kv *kv, const int32_t *tokens, int32_t n, qn_kv_piece_fn fn, void *user)
{
    (void)qn_kv_rewind(kv, 0);
    kv->n = n;
    kv->n_held = -1;
    const qn_status s = take_seen(kv, n) ? qn_kv_pieces(kv, fn, user) : QN_ERR_CTX_FULL;
    if (s != QN_OK) {
        (void)qn_kv_rewind(kv, 0);
        return s;
    }
    memcpy(kv->token, tokens, (size_t)n * sizeof *tokens);
    publish_seen(kv);
    return QN_OK;
}

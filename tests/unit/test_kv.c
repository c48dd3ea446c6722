/* The pool of blocks and its timelines: what each block holds is written and read here, so that a wrong table is a wrong number. */
#include "src/base/hash.h"
#include "src/kv/kv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Vectors of the authors' reference implementation: key 00 01 .. 0f, messages of 0 and 1 bytes 00 01 .. */
static void siphash(void **state)
{
    (void)state;
    static const uint8_t want[2][16] = {
        { 0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02, 0x93 },
        { 0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44, 0x34, 0x76, 0x59, 0x11, 0x9b, 0x22, 0xfc, 0x45 },
    };
    const qn_hash key = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 };
    const uint8_t message[] = { 0 };
    for (size_t n = 0; n < 2; n++) {
        const qn_hash h = qn_hash_of(key, message, n);
        for (int i = 0; i < 8; i++) {
            assert_int_equal((h.lo >> (8 * i)) & 255, want[n][i]);
            assert_int_equal((h.hi >> (8 * i)) & 255, want[n][8 + i]);
        }
    }
}

enum { CTX = 160, CHUNK = 32, WINDOW = 40, N_LAYER = 3, STATE = 5 };

static const qn_kv_layer plain[N_LAYER] = {
    { .n_head_kv = 2, .k_bytes = 64, .v_bytes = 64 },
    { .n_head_kv = 1, .k_bytes = 64, .v_bytes = 64, .window = WINDOW },
    { .n_head_kv = 1, .k_bytes = 64, .v_bytes = 128 },
};

/* What a model with these tokens would have at a position: of all tokens up to it. */
static uint32_t mark(const int32_t *tokens, int32_t position, int32_t layer, int32_t head)
{
    uint32_t h = 2166136261u;
    for (int32_t i = 0; i <= position; i++) h = (h ^ (uint32_t)tokens[i]) * 16777619u;
    return (h ^ (uint32_t)(layer * 31 + head)) * 16777619u;
}

static uint32_t *cell(void *block, int32_t position)
{
    return (uint32_t *)block + position % QN_KV_POSITIONS;
}

static void step(qn_kv *kv, const qn_kv_layer *layers, const int32_t *text, int32_t n, bool has_state)
{
    const int32_t at = qn_kv_position(kv);
    assert_true(qn_kv_reserve(kv, at + n));
    for (int32_t p = at; p < at + n; p++) {
        for (int32_t l = 0; l < N_LAYER; l++)
            for (int32_t h = 0; h < layers[l].n_head_kv; h++) {
                *cell(qn_kv_k(kv, l, h, p), p) = mark(text, p, l, h);
                *cell(qn_kv_v(kv, l, h, p), p) = ~mark(text, p, l, h);
            }
        if (has_state) qn_kv_state(kv, 0)[STATE - 1] += (float)(text[p] * (p + 1));
    }
    qn_kv_commit(kv, text + at, n);
}

/* All that the next token may look at is what this text has. */
static void check(const qn_kv *kv, const qn_kv_layer *layers, const int32_t *text, bool has_state)
{
    const int32_t n = qn_kv_position(kv);
    float state = 0;
    assert_memory_equal(qn_kv_tokens(kv), text, (size_t)n * sizeof *text);
    for (int32_t p = 0; p < n; p++) {
        state += (float)(text[p] * (p + 1));
        for (int32_t l = 0; l < N_LAYER; l++) {
            if (layers[l].window && p <= n - layers[l].window) continue;
            for (int32_t h = 0; h < layers[l].n_head_kv; h++) {
                assert_int_equal(*cell(qn_kv_k(kv, l, h, p), p), mark(text, p, l, h));
                assert_int_equal(*cell(qn_kv_v(kv, l, h, p), p), ~mark(text, p, l, h));
            }
        }
    }
    if (has_state) assert_true(qn_kv_state(kv, 0)[STATE - 1] == state);
}

typedef struct world {
    qn_kv_layer layers[N_LAYER];
    qn_kv_layout *layout;
    qn_kv_pool *pool;
} world;

static void open_world(world *w, double n_timelines, bool has_state)
{
    memcpy(w->layers, plain, sizeof plain);
    if (has_state) w->layers[0].state_floats = STATE;
    assert_int_equal(qn_kv_layout_open(&w->layout, w->layers, N_LAYER, CTX, CHUNK, NULL), QN_OK);
    assert_int_equal(qn_kv_pool_open(&w->pool, w->layout, n_timelines, NULL), QN_OK);
}

static void close_world(world *w)
{
    qn_kv_pool_info info;
    qn_kv_pool_get_info(w->pool, &info);
    assert_int_equal(info.n_free + info.n_idle, info.n_blocks); /* none is lost */
    qn_kv_pool_close(&w->pool);
    qn_kv_layout_close(&w->layout);
}

static uint32_t seed = 1;
static int32_t draw(int32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (int32_t)((seed >> 8) % (uint32_t)n);
}

/* Timelines that go on, back, over to other texts, become copies of each other, end and begin; texts have beginnings in common. */
static void walk(bool has_state, double n_timelines)
{
    enum { N = 3, N_TEXTS = 5 };
    world w;
    qn_kv *kv[N];
    int32_t text[N_TEXTS][CTX], of[N] = { 0 };
    open_world(&w, n_timelines, has_state);
    for (int32_t t = 0; t < N_TEXTS; t++)
        for (int32_t i = 0, same = t ? draw(CTX) : 0; i < CTX; i++) text[t][i] = i < same ? text[t - 1][i] : draw(50);
    for (int32_t i = 0; i < N; i++) assert_int_equal(qn_kv_open(&kv[i], w.pool, NULL), QN_OK);
    int32_t n_found = 0;
    for (int32_t round = 0; round < 4000; round++) {
        const int32_t i = draw(N), what = draw(12), at = qn_kv_position(kv[i]);
        if (what < 6) {
            const int32_t most = CTX - at < CHUNK ? CTX - at : CHUNK, n = most > 0 ? 1 + draw(what < 3 ? 1 : most) : 0;
            if (n && qn_kv_missing(kv[i], at + n) <= 0) step(kv[i], w.layers, text[of[i]], n, has_state);
        } else if (what < 8) {
            (void)qn_kv_rewind(kv[i], draw(at + 1));
        } else if (what < 10) {
            of[i] = draw(N_TEXTS);
            n_found += qn_kv_match(kv[i], text[of[i]], draw(CTX + 1)) > 0;
        } else if (what < 11) {
            const int32_t from = draw(N);
            qn_kv_fork(kv[i], kv[from]);
            of[i] = of[from];
        } else if (draw(2)) {
            qn_kv_abandon(kv[i]);
        } else {
            qn_kv_close(&kv[i]);
            assert_int_equal(qn_kv_open(&kv[i], w.pool, NULL), QN_OK);
        }
        for (int32_t k = 0; k < N; k++) check(kv[k], w.layers, text[of[k]], has_state);
    }
    assert_true(n_found > 100);
    for (int32_t i = 0; i < N; i++) qn_kv_close(&kv[i]);
    close_world(&w);
}

static void random_walks(void **state)
{
    (void)state;
    for (int32_t i = 0; i < 4; i++) {
        walk(i & 1, 3);
        walk(i & 1, 1.4);
        walk(i & 1, 30);
    }
}

static void finds_blocks(void **state)
{
    (void)state;
    world w;
    qn_kv *a, *b;
    int32_t text[CTX];
    for (int32_t i = 0; i < CTX; i++) text[i] = draw(99);
    open_world(&w, 4, false);
    assert_int_equal(qn_kv_open(&a, w.pool, NULL), QN_OK);
    assert_int_equal(qn_kv_open(&b, w.pool, NULL), QN_OK);
    for (int32_t i = 0; i < 4; i++) step(a, w.layers, text, 25, false);
    assert_int_equal(qn_kv_match(b, text, 100), 96); /* whole blocks */
    check(b, w.layers, text, false);
    assert_int_equal(qn_kv_match(b, text, 95), 95); /* one's own: any position */
    text[70] = 1000;
    assert_int_equal(qn_kv_match(b, text, 100), 70);
    qn_kv_close(&a);
    qn_kv_close(&b);
    assert_int_equal(qn_kv_open(&b, w.pool, NULL), QN_OK);
    assert_int_equal(qn_kv_match(b, text, 100), 64); /* of timelines that are closed */
    qn_kv_close(&b);
    close_world(&w);
}

/* The end of a text gives way before its beginning, and the text left alone longest before others. */
static void evicts_oldest(void **state)
{
    (void)state;
    world w;
    qn_kv *kv;
    int32_t text[3][CTX];
    for (int32_t t = 0; t < 3; t++)
        for (int32_t i = 0; i < CTX; i++) text[t][i] = draw(99);
    open_world(&w, 2, false);
    for (int32_t t = 0; t < 3; t++) {
        const int32_t n = t < 2 ? 128 : 96;
        assert_int_equal(qn_kv_open(&kv, w.pool, NULL), QN_OK);
        for (int32_t i = 0; i < n; i += CHUNK) step(kv, w.layers, text[t], CHUNK, false);
        qn_kv_close(&kv);
    }
    assert_int_equal(qn_kv_open(&kv, w.pool, NULL), QN_OK);
    assert_int_equal(qn_kv_match(kv, text[2], 96), 96);
    assert_int_equal(qn_kv_match(kv, text[1], 128), 128);
    assert_true(qn_kv_match(kv, text[0], 128) < 128);
    qn_kv_close(&kv);
    close_world(&w);
}

static void full(void **state)
{
    (void)state;
    world w;
    qn_kv *a, *b;
    int32_t text[CTX] = { 0 };
    open_world(&w, 1, false);
    assert_int_equal(qn_kv_open(&a, w.pool, NULL), QN_OK);
    assert_int_equal(qn_kv_open(&b, w.pool, NULL), QN_OK);
    for (int32_t i = 0; i < CTX; i += CHUNK) step(a, w.layers, text, CHUNK, false);
    assert_false(qn_kv_reserve(b, 1));
    assert_true(qn_kv_missing(b, 1) > 0);
    check(a, w.layers, text, false);
    assert_true(qn_kv_rewind(a, CTX - 5)); /* its last block is published: there is no other to copy it to, and nobody else holds it */
    step(a, w.layers, text, 5, false);
    check(a, w.layers, text, false);
    qn_kv_close(&a);
    step(b, w.layers, text, 3, false);
    check(b, w.layers, text, false);
    qn_kv_close(&b);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(siphash), cmocka_unit_test(finds_blocks), cmocka_unit_test(evicts_oldest), cmocka_unit_test(full), cmocka_unit_test(random_walks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "src/base/hash.h"

typedef struct state {
    uint64_t v[4];
} state;

static uint64_t rotate(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static void mix(state *s, int n_rounds)
{
    uint64_t *v = s->v;
    for (int i = 0; i < n_rounds; i++) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] = rotate(v[2], 32);
    }
}

/* n <= 8 bytes, least significant first: the same on every machine. */
static uint64_t word(const uint8_t *p, size_t n)
{
    uint64_t w = 0;
    for (size_t i = 0; i < n; i++) w |= (uint64_t)p[i] << (8 * i);
    return w;
}

static void take(state *s, uint64_t w)
{
    s->v[3] ^= w;
    mix(s, 2);
    s->v[0] ^= w;
}

static uint64_t result(const state *s)
{
    return s->v[0] ^ s->v[1] ^ s->v[2] ^ s->v[3];
}

qn_hash qn_hash_of(qn_hash key, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    state s = { { key.lo ^ 0x736f6d6570736575, key.hi ^ 0x646f72616e646f6d ^ 0xee, key.lo ^ 0x6c7967656e657261, key.hi ^ 0x7465646279746573 } };
    size_t i = 0;
    for (; i + 8 <= n; i += 8) take(&s, word(p + i, 8));
    take(&s, (uint64_t)n << 56 | word(p + i, n - i));
    qn_hash h;
    s.v[2] ^= 0xee;
    mix(&s, 4);
    h.lo = result(&s);
    s.v[1] ^= 0xdd;
    mix(&s, 4);
    h.hi = result(&s);
    return h;
}

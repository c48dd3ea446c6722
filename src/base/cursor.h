/*
 * A reader of bytes from outside that fails once and stays failed: a read past the end gives zero (or NULL) and every later one too, so
 * a parser checks `failed` where it is convenient, and never sees a byte that is not there. Numbers are little-endian.
 */
#ifndef QN_BASE_CURSOR_H
#define QN_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct qn_cursor {
    const uint8_t *at, *end;
    bool failed;
} qn_cursor;

static inline qn_cursor qn_cursor_of(const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    return (qn_cursor){ p, p + n, false };
}

static inline size_t qn_cursor_left(const qn_cursor *c)
{
    return c->failed ? 0 : (size_t)(c->end - c->at);
}

/** The next n bytes, or NULL. n comes straight from the file: it is compared, never added to. */
static inline const uint8_t *qn_cursor_take(qn_cursor *c, uint64_t n)
{
    if (c->failed || n > (uint64_t)(c->end - c->at)) {
        c->failed = true;
        return NULL;
    }
    const uint8_t *p = c->at;
    c->at += (size_t)n;
    return p;
}

/** Are `count` things of at least `min_bytes` (1 ..) each still possible? Fails the cursor when not; allocates and reads nothing. */
static inline bool qn_cursor_expect(qn_cursor *c, uint64_t count, uint64_t min_bytes)
{
    if (count > qn_cursor_left(c) / min_bytes) c->failed = true;
    return !c->failed;
}

/** A little-endian number of n bytes (1 .. 8). */
static inline uint64_t qn_load_le(const uint8_t *p, unsigned n)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < n; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static inline uint32_t qn_cursor_u32(qn_cursor *c)
{
    const uint8_t *p = qn_cursor_take(c, 4);
    return p ? (uint32_t)qn_load_le(p, 4) : 0;
}

static inline uint64_t qn_cursor_u64(qn_cursor *c)
{
    const uint8_t *p = qn_cursor_take(c, 8);
    return p ? qn_load_le(p, 8) : 0;
}

#endif

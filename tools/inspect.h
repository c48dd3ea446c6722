/* What `quern inspect` found out about a file, and its two ways of showing it. */
#ifndef QUERN_INSPECT_H
#define QUERN_INSPECT_H

#include "cli.h"

enum { INSPECT_MAX_TYPES = 64 };

/** Tensors of one type, or all of them. */
typedef struct inspect_type {
    const char *name;
    int64_t n_tensors;
    uint64_t n_weights, n_bytes;
} inspect_type;

typedef struct inspect {
    const char *path;
    const qn_file *file;
    inspect_type types[INSPECT_MAX_TYPES]; /* [n_types], the one with the most bytes first */
    int n_types;
    inspect_type total;
    int32_t n_ctx, n_chunk;   /* what `memory` is for                               */
    qn_memory_plan memory;
    uint64_t available_bytes; /* memory this machine can give; 0: not known         */
    qn_err memory_err;        /* status QN_OK: memory is known                      */
    int32_t max_array; /* elements of an array that are shown; -1: all          */
    bool full;         /* long strings are not shortened                        */
    bool keys_only;    /* neither tensors nor totals                            */
} inspect;

static inline double inspect_bits(const inspect_type *t)
{
    return t->n_weights ? (double)t->n_bytes * 8 / (double)t->n_weights : 0;
}

static inline uint64_t inspect_memory(const inspect *in)
{
    return in->memory.weight_bytes + in->memory.kv_bytes + in->memory.scratch_bytes;
}

void inspect_text(const inspect *in);
/** @return an exit code: memory may run short */
int inspect_json(const inspect *in);

/** Print bytes of a file so that a terminal shows them and obeys none: control characters, direction marks and invalid UTF-8 escaped. */
void inspect_print_safe(qn_str s);
/** A value on one line: at most `max_array` elements, and strings cut after `max_bytes` bytes (0: never). */
void inspect_print_value(const qn_value *v, int32_t max_array, size_t max_bytes);

/** Length of the UTF-8 character at s, 0 when it is invalid. @param n bytes there, 1 .. @param cp out: the code point */
static inline size_t inspect_utf8(const unsigned char *s, size_t n, unsigned *cp)
{
    static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    static const unsigned lowest[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const size_t len = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf8 ? 4 : 0;
    if (len == 0 || len > n) return 0;
    *cp = len == 1 ? s[0] : (unsigned)(s[0] ^ lead[len]);
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        *cp = *cp << 6 | (s[i] & 0x3f);
    }
    return len > 1 && (*cp < lowest[len] || *cp > 0x10ffff || (*cp >= 0xd800 && *cp < 0xe000)) ? 0 : len;
}

#endif

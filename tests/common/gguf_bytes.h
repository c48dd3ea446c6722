/* GGUF files written byte by byte, wrong ones included: what the writer of the library would refuse. */
#ifndef QN_TEST_GGUF_BYTES_H
#define QN_TEST_GGUF_BYTES_H

#include "src/base/mem.h"

#include <string.h>

/** How much slower a build with a sanitizer may be where a test measures time. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SLOWNESS 20
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEST_SLOWNESS 20
#endif
#endif
#ifndef TEST_SLOWNESS
#define TEST_SLOWNESS 1
#endif

static inline void gguf_bytes(qn_buf *b, const void *bytes, size_t n)
{
    qn_buf_add(b, bytes, n);
}

static inline void gguf_u32(qn_buf *b, uint32_t v)
{
    qn_buf_add(b, &v, sizeof v);
}

static inline void gguf_u64(qn_buf *b, uint64_t v)
{
    qn_buf_add(b, &v, sizeof v);
}

static inline void gguf_str(qn_buf *b, const char *s)
{
    gguf_u64(b, strlen(s));
    gguf_bytes(b, s, strlen(s));
}

static inline void gguf_header(qn_buf *b, uint32_t version, uint64_t n_tensors, uint64_t n_keys)
{
    gguf_bytes(b, "GGUF", 4);
    gguf_u32(b, version);
    gguf_u64(b, n_tensors);
    gguf_u64(b, n_keys);
}

/** Name and type; the value follows. */
static inline void gguf_key(qn_buf *b, const char *key, uint32_t type)
{
    gguf_str(b, key);
    gguf_u32(b, type);
}

/** Element type and count; the elements follow. */
static inline void gguf_array(qn_buf *b, uint32_t elem, uint64_t count)
{
    gguf_u32(b, elem);
    gguf_u64(b, count);
}

static inline void gguf_tensor(qn_buf *b, const char *name, uint32_t n_dims, const uint64_t *dims, uint32_t type, uint64_t offset)
{
    gguf_str(b, name);
    gguf_u32(b, n_dims);
    for (uint32_t i = 0; i < n_dims && i < 8; i++) gguf_u64(b, dims[i]);
    gguf_u32(b, type);
    gguf_u64(b, offset);
}

/** Zeros up to a multiple of `alignment`, then n more: the tensor data. */
static inline void gguf_data(qn_buf *b, size_t alignment, size_t n)
{
    while (b->len % alignment) gguf_bytes(b, "", 1);
    for (size_t i = 0; i < n; i++) gguf_bytes(b, "", 1);
}

#endif

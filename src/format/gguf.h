/* Inside the GGUF reader: one parsed file, and the set of them behind a qn_file. */
#ifndef QN_FORMAT_GGUF_H
#define QN_FORMAT_GGUF_H

#include "quant/quant.h"
#include "src/base/map.h"
#include "src/format/names.h"

typedef struct qn_gguf_key {
    qn_str name; /* first: qn_names reads it */
    qn_value value;
} qn_gguf_key;

typedef struct qn_gguf_tensor {
    qn_tensor_info info; /* begins with the name: qn_names reads it */
    const qn_fmt *fmt;
    const uint8_t *bytes; /* [info.n_bytes] */
    int64_t n_rows;
    size_t row_bytes;
} qn_gguf_tensor;

/** One file: every count, length, offset and size in it has been checked against the bytes that are there. */
typedef struct qn_gguf {
    qn_map map; /* closed when the bytes are somebody else's */
    const uint8_t *bytes;
    size_t n_bytes;
    int32_t version;
    uint64_t alignment;
    qn_gguf_key *keys; /* [n_keys] */
    size_t n_keys, cap_keys;
    qn_names key_names;
    qn_gguf_tensor *tensors; /* [n_tensors]; moved into the qn_file when the set is complete */
    size_t n_tensors, cap_tensors;
} qn_gguf;

/** Parse g->bytes. On failure the caller closes what is half-built. */
qn_status qn_gguf_parse(qn_gguf *g, qn_err *err);
/** Map and parse. On failure *g is closed and the sentence begins with the path. */
qn_status qn_gguf_open(qn_gguf *g, const char *path, qn_err *err);
void qn_gguf_close(qn_gguf *g);
/** @return false when there is no such key */
bool qn_gguf_find(const qn_gguf *g, qn_str key, qn_value *out);

struct qn_file {
    qn_gguf *shards; /* [n_shards] */
    size_t n_shards, cap_shards;
    qn_gguf_tensor *tensors; /* [n_tensors] of all shards, in order */
    size_t n_tensors, cap_tensors;
    qn_names tensor_names;
    uint64_t n_bytes;
};

/** The same as qn_file_open over bytes that the caller keeps alive. A shard of a split set is refused: it has no siblings here. */
qn_status qn_file_open_memory(qn_file **out, const void *bytes, size_t n, qn_err *err);

/** What split keys say. Without them: one file, number 0 of 1. */
typedef struct qn_split_info {
    int64_t no, count;
    int64_t n_tensors; /* of all shards; -1 in a file that is not split */
} qn_split_info;
qn_status qn_split_read(const qn_gguf *g, qn_split_info *out, qn_err *err);
/** Open all shards of the set that `first`, opened from `path`, belongs to, into file->shards in order. `first` is moved from as soon as
 *  its turn comes; the caller closes what is left in it. */
qn_status qn_split_open(qn_file *file, qn_gguf *first, const char *path, const qn_split_info *info, qn_err *err);

/** "an HTML page", or NULL when the first bytes look like nothing that is known. Static. */
const char *qn_sniff(const uint8_t *bytes, size_t n);

#endif

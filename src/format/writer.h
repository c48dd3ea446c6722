/*
 * Writing GGUF files (version 3). Keys and tensors are announced first, then the tensor data follows in the order of the announcements.
 *
 *     qn_writer *w;
 *     QN_TRY(qn_writer_open(&w, "tiny.gguf", 32, err));
 *     qn_writer_key_str(w, "general.architecture", QN_LIT("llama"));
 *     qn_writer_tensor(w, "token_embd.weight", 0, 2, (int64_t[]){ 64, 256 }, floats);
 *     return qn_writer_close(&w, err);
 *
 * The first failure stays: later calls return it and do nothing, and qn_writer_close tells it, so a caller may check there alone. The file
 * appears under its name whole, or not at all: it grows under a temporary name beside it, is flushed to the disk and renamed.
 */
#ifndef QN_FORMAT_WRITER_H
#define QN_FORMAT_WRITER_H

#include "src/base/err.h"

typedef struct qn_writer qn_writer;

/**
 * @param path       replaced when it exists as a regular file (or a link: the link is replaced); else refused, and so is an empty one. NULL: keys
 *                   and tensors are only announced, for qn_writer_file_bytes; nothing can be written
 * @param alignment  a power of two up to 2^30; written as general.alignment unless it is the default, 32
 */
qn_status qn_writer_open(qn_writer **out, const char *path, uint32_t alignment, qn_err *err);
/** Write what is left, flush and rename; on a failure, now or before, remove the temporary file. Frees the writer. NULL: QN_OK. */
qn_status qn_writer_close(qn_writer **w, qn_err *err);
/** Give up: remove the temporary file, free the writer. Accepts NULL. */
void qn_writer_abandon(qn_writer **w);

/* Keys, before the first tensor data. A name that is there twice is QN_ERR_ARG when the header is written. */
qn_status qn_writer_key_u32(qn_writer *w, const char *key, uint32_t value);
qn_status qn_writer_key_f32(qn_writer *w, const char *key, float value);
qn_status qn_writer_key_bool(qn_writer *w, const char *key, bool value);
qn_status qn_writer_key_str(qn_writer *w, const char *key, qn_str value);
/** A scalar of any fixed-size type; `value` points to it in the machine's form (a bool is one byte of 0 or 1). */
qn_status qn_writer_key_scalar(qn_writer *w, const char *key, qn_vtype type, const void *value);
/** n scalars of a fixed-size type, packed. */
qn_status qn_writer_key_array(qn_writer *w, const char *key, qn_vtype elem, const void *items, uint64_t n);
qn_status qn_writer_key_strings(qn_writer *w, const char *key, const qn_str *items, uint64_t n);
/** A value as it was read from a file, nested arrays included; `general.alignment` is the writer's own and is left out. */
qn_status qn_writer_key_value(qn_writer *w, qn_str key, const qn_value *value);

/**
 * Announce a tensor.
 * @param type    GGUF number of a format that quern knows
 * @param dims    [n_dims], n_dims 1 .. 4; dims[0] is the row length, a multiple of the format's block
 * @param bytes   its data, borrowed until qn_writer_close; NULL: it comes through qn_writer_data when its turn is there
 */
qn_status qn_writer_tensor(qn_writer *w, const char *name, int32_t type, int32_t n_dims, const int64_t *dims, const void *bytes);
/** The next n bytes of tensor data, in order over the tensors that were announced with NULL. Pieces may end anywhere. */
qn_status qn_writer_data(qn_writer *w, const void *bytes, size_t n);

/* Instead of qn_writer_data: pieces in any order, from many threads. All tensors are announced with NULL then. */

/** Write the header and take the room of the whole file on the disk, so that a disk too small is known before the work is done.
 *  @return QN_ERR_IO: the sentence has the bytes that are needed and those that are free */
qn_status qn_writer_reserve(qn_writer *w, qn_err *err);
/** Bytes [offset, offset + n) of tensor `i`, in the order of announcement. Each byte is placed once. Any thread, after qn_writer_reserve.
 *  @return QN_ERR_IO, which does not stay: who gets it abandons the writer */
qn_status qn_writer_place(const qn_writer *w, size_t i, uint64_t offset, const void *bytes, size_t n, qn_err *err);
/** Bytes of the whole file, as announced so far. */
uint64_t qn_writer_file_bytes(const qn_writer *w);
/** Write what is left and flush to the disk, so that qn_writer_close has only to rename. Of several files that belong together all are flushed
 *  before the first gets its name. */
qn_status qn_writer_flush(qn_writer *w, qn_err *err);
/** The first failure so far, with its sentence, or QN_OK. */
qn_status qn_writer_check(const qn_writer *w, qn_err *err);

#endif

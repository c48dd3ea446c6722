/* Typed access to a file's metadata for those who read it: a status and a sentence that names the key. */
#ifndef QN_FORMAT_KEYS_H
#define QN_FORMAT_KEYS_H

#include "src/base/map.h"

/** "%s" in `key_fmt` is replaced by `arch`. Missing: QN_ERR_NOT_FOUND. Outside [lo, hi]: QN_ERR_FORMAT. Wrong type: QN_ERR_TYPE. */
qn_status qn_key_i64(const qn_file *f, const char *key_fmt, const char *arch, int64_t lo, int64_t hi, int64_t *out, qn_err *err);
/** NaN and infinities are QN_ERR_FORMAT. */
qn_status qn_key_f32(const qn_file *f, const char *key_fmt, const char *arch, float *out, qn_err *err);
qn_status qn_key_bool(const qn_file *f, const char *key_fmt, const char *arch, bool *out, qn_err *err);
qn_status qn_key_str(const qn_file *f, const char *key_fmt, const char *arch, qn_str *out, qn_err *err);
/** An array whose elements are exactly of type `elem`. */
qn_status qn_key_array(const qn_file *f, const char *key_fmt, const char *arch, qn_vtype elem, qn_value *out, qn_err *err);

/** The mapped bytes of tensor i: [info.n_bytes]. */
const uint8_t *qn_file_tensor_bytes(const qn_file *f, int64_t i);
/** The map that holds tensor i, as long as the file is open. @param at  where in it */
const qn_map *qn_file_tensor_map(const qn_file *f, int64_t i, size_t *at);
/** Tell the system that bytes [begin, begin + n) of tensor i are not needed any more (they stay readable). */
void qn_file_tensor_drop(const qn_file *f, int64_t i, size_t begin, size_t n);
/** Tell the system that tensor i is about to be read from front to back. */
void qn_file_tensor_expect(const qn_file *f, int64_t i);

#endif

/* Metadata values as they lie in the file. */
#ifndef QN_FORMAT_VALUE_H
#define QN_FORMAT_VALUE_H

#include "src/base/cursor.h"
#include "src/base/err.h"

/** Arrays in arrays in arrays ...: deeper ones are refused. */
enum { QN_VALUE_MAX_DEPTH = 8 };

/** Bytes of one value of a fixed size; 0 for strings and arrays. -1: no such type. */
int qn_vtype_bytes(uint32_t type);

/**
 * Read one value and check it to the last nested element: types, lengths, counts, booleans of 0 and 1, depth. Allocates nothing.
 * @return QN_ERR_FORMAT; the sentence does not name the key
 */
qn_status qn_value_read(qn_cursor *c, uint32_t type, qn_value *out, qn_err *err);

#endif

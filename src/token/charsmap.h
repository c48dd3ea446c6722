/* SentencePiece's precompiled_charsmap: replacements of character sequences (mostly NFKC), in a double array. */
#ifndef QN_TOKEN_CHARSMAP_H
#define QN_TOKEN_CHARSMAP_H

#include "src/base/err.h"

/** Check the frame: a length, the double array, replacements that end in a NUL. */
qn_status qn_charsmap_check(const uint8_t *map, size_t n_bytes, qn_err *err);

/**
 * The longest sequence at the start of text that is replaced.
 * @param to  its replacement, in the map
 * @return bytes of text that it covers, 0 when there is none
 */
size_t qn_charsmap_longest(const uint8_t *map, size_t n_bytes, qn_str text, qn_str *to);

#endif

/* Unicode normal forms of decoded text, in linear time on any marks. */
#ifndef QN_TOKEN_NORMAL_H
#define QN_TOKEN_NORMAL_H

#include "src/token/work.h"

/** Append the canonical decomposition (NFD) of one code point to w->cp, before ordering; bytes that are not UTF-8 pass through.
 *  w->cls is not kept. @return false when memory is short */
bool qn_nfd_add(qn_work *w, uint32_t cp);
/** Put the runs of marks in w->cp[from, n_cp) into canonical order. @return false when memory is short */
bool qn_nfd_order(qn_work *w, size_t from);

/** Is the text its own NFC for sure, as text without code points above U+02FF is? */
bool qn_nfc_is_plain(qn_str text);

/** The NFC of a text, in w->text (replaced). @return false when memory is short */
bool qn_nfc(qn_work *w, qn_str text);

#endif

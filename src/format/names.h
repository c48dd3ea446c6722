/* Finding things by name: a list sorted by hash and name, so that look-ups take O(log n) whatever names a hostile file chooses. */
#ifndef QN_FORMAT_NAMES_H
#define QN_FORMAT_NAMES_H

#include "src/base/err.h"

typedef struct qn_names {
    struct qn_names_entry *sorted; /* [n] */
    const uint8_t *items;          /* borrowed; item i is at items + i * stride and begins with its qn_str name */
    size_t stride;
    int64_t n;
} qn_names;

/**
 * Index n items that begin with a qn_str. The items must stay where they are as long as the index is used.
 * @param twin  out: when two items have one name, the index of one of them and the status QN_ERR_FORMAT (without a sentence); else -1
 * @return QN_ERR_NOMEM, QN_ERR_FORMAT; *out is empty then
 */
qn_status qn_names_open(qn_names *out, const void *items, size_t stride, int64_t n, int64_t *twin);
void qn_names_close(qn_names *names);
/** @return index of the item, or -1 */
int64_t qn_names_find(const qn_names *names, qn_str name);

#endif

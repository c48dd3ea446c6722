/* Any bytes as importance data: loaded, looked up, written and loaded again. */
#include "src/convert/imatrix.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(const qn_imatrix *m)
{
    for (size_t i = 0; i < m->n; i++) {
        const qn_imatrix_entry *e = &m->entry[i];
        const float *v;
        if (qn_imatrix_find(m, e->name, e->n_cols, &v) != QN_OK || v != e->mean) abort();
        for (int64_t k = 0; k < e->n_cols * e->n_mats; k++)
            if (!(v[k] >= 0) || isinf(v[k])) abort();
        if (qn_imatrix_find(m, e->name, 0, &v) == QN_OK || v) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    qn_imatrix *m = NULL;
    qn_err err = { 0 };
    const qn_status s = qn_imatrix_load_memory(&m, data, size, &err);
    if ((s == QN_OK) != (m != NULL) || (s != QN_OK && !err.text[0])) abort();
    if (m) look_up(m);
    qn_imatrix_close(&m);
    return 0;
}

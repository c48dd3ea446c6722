/* A place in the quantising pipeline for methods that see more than one row: they encode the rows of a tensor in the encoder's stead. */
#ifndef QN_CONVERT_ENCODE_HOOK_H
#define QN_CONVERT_ENCODE_HOOK_H

#include "quant/quant.h"

typedef struct qn_encode_hook {
    void *user;
    /**
     * Before the rows of tensor i, from the thread that called qn_quantize_run. Tensors come one after another: those outside the layers, then the
     * layers ascending (within one, in the order of the file), then the output head. Not asked about tensors that are copied.
     * @param fmt   that the tensor gets
     * @param take  out: does `rows` encode it? Else the format's encoder does
     */
    qn_status (*begin)(void *user, int64_t i_tensor, const qn_tensor_info *tensor, const qn_fmt *fmt, bool *take, qn_err *err);
    /**
     * Encode whole rows, which are finite. Many threads at once, each with other rows; the bytes must not depend on how rows are cut into calls.
     * @param w    [n_rows][dims[0]]
     * @param row  number of the first, 0 .. dims[1] * dims[2] * dims[3] - 1
     * @param out  [n_rows][bytes of a row]
     */
    qn_status (*rows)(void *user, const float *w, int64_t row, int64_t n_rows, uint8_t *out, qn_err *err);
} qn_encode_hook;

/** Use the hook in qn_quantize_run from now on; NULL: none. Copied. */
void qn_quantize_set_hook(qn_quantize *q, const qn_encode_hook *hook);

#endif

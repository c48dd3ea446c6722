/* Tensor formats. Each quant/fmt_<name>.c defines `const qn_fmt qn_fmt_<name>`; the build makes the registry. */
#ifndef QN_QUANT_H
#define QN_QUANT_H

#include "src/base/err.h"

typedef struct qn_fmt {
    int32_t id;        /* type number in a GGUF file                                        */
    const char *name;  /* as GGUF tools print it: "Q4_K"                                    */
    int32_t block;     /* weights in a block                                                */
    int32_t bytes;     /* bytes of a block                                                  */
    /** Decode n_blocks blocks to float32, bit for bit as the GGML reference does. @param out [n_blocks * block] */
    void (*decode)(const uint8_t *blocks, int64_t n_blocks, float *out);
} qn_fmt;

/** NULL for a type number that no format has. */
const qn_fmt *qn_fmt_by_id(int32_t id);
/** Case-insensitive; NULL when unknown. */
const qn_fmt *qn_fmt_by_name(const char *name);
int32_t qn_fmt_count(void);
/** @param i 0 .. qn_fmt_count() - 1 */
const qn_fmt *qn_fmt_at(int32_t i);

/** Bytes of a row of n weights; false when n is no multiple of the block or the product does not fit. */
bool qn_fmt_row_bytes(const qn_fmt *fmt, int64_t n, size_t *out);

#endif
